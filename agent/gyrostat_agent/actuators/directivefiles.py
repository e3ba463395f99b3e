"""Directive files: settled *by name*. A number is never overwritten; carrying an intent out twice is once.

Order of writing: the resume file (only a restart has one), the directive under its number by link(2), then the
bell. A crash in between leaves what the same call completes.
"""

import contextlib
import os

from gyrostat.bell import LARGEST
from gyrostat.wire import Directive, RunDirectory
from gyrostat.wire.rights import read_trusted
from gyrostat_agent import failpoints
from gyrostat_rules.inputs import Delivery, DeliveryWord

_LIMIT = 1 << 20


class DirectiveFiles:
    """Writes directives into one run directory."""

    def __init__(self, run: RunDirectory) -> None:
        self._run = run

    def carry_out(self, action: str, orders: dict[str, str]) -> Delivery | None:
        """Lay the directive and ring; None where it lies there now. Safe to call again after a crash."""
        text = orders["directive"].encode()
        number = Directive.decode(text).number
        try:
            if "resume" in orders:
                self._write_resume(orders["resume"].encode())
                failpoints.reach("resume.written")
            if other := self._link(number, text):
                return Delivery(action, DeliveryWord.FAILED, other)
            failpoints.reach("directive.linked")
            try:
                self._ring(number)
            except OSError as error:  # the next bell will tell of it: it may yet be obeyed
                said = f"directive {number} lies there, but the bell cannot be rung: {error.strerror}"
                return Delivery(action, DeliveryWord.UNKNOWN, said)
            failpoints.reach("bell.rung")
        except OSError as error:
            return Delivery(action, DeliveryWord.FAILED, f"directive {number} cannot be written: {error.strerror}")
        return None

    def newest(self) -> int:
        """The highest number that lies in the folder or was rung; 0 where none."""
        numbers = [0]
        with contextlib.suppress(OSError):
            for name in os.listdir(self._run.directives):
                stem, _, kind = name.partition(".")
                if kind == "json" and stem.isascii() and stem.isdigit():
                    numbers.append(int(stem[:20]))
        with contextlib.suppress(OSError):
            numbers.append(int.from_bytes(read_trusted(self._run.bell, 8), "little"))
        return max(n for n in numbers if n <= LARGEST)  # beyond it is damage, which no trainer would obey

    def _link(self, number: int, text: bytes) -> str:
        """Put the file under its name; why not, where the name is taken by another text."""
        path = self._run.directive(number)
        draft = self._draft(f"{number}.json", text)
        try:
            os.link(draft, path)
        except FileExistsError:
            if read_trusted(path, _LIMIT) != text:
                return f"directive {number} lies there already and says something else"
        finally:
            os.unlink(draft)
        return ""

    def _write_resume(self, text: bytes) -> None:
        os.rename(self._draft("resume.json", text), self._run.resume)

    def _draft(self, name: str, text: bytes) -> str:
        """A complete file beside its place, so that nobody ever reads half of it."""
        path = os.path.join(self._run.directives, f".{name}.draft")
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            view = memoryview(text)
            while view:
                view = view[os.write(fd, view) :]
        finally:
            os.close(fd)
        return path

    def _ring(self, number: int) -> None:
        """Write the newest number in place: eight bytes that a reader sees whole. It never goes back."""
        fd = os.open(self._run.bell, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            rung = int.from_bytes(os.pread(fd, 8, 0), "little")
            if rung < number or rung > LARGEST:
                os.pwrite(fd, number.to_bytes(8, "little"), 0)
        finally:
            os.close(fd)
