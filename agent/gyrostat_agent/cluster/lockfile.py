"""The lease as a file beside the checkpoints: ``.gyrostat/leader.json``, for runs without Kubernetes.

A shared folder has no locks that can be relied on (``flock`` over NFS holds on one machine alone), but two things it
has: link(2) fails where the name is there, and rename(2) replaces a file as a whole. So a term is claimed by making its
name, ``leader.<term>.claim``, which can be done once; and whoever has made it writes ``leader.json`` anew at each beat.
A late word of an old leader can stand there until the newer one's next beat: readers pass an older term over.
"""

import contextlib
import json
import os
import re
import time
from collections.abc import Callable
from typing import Any, TypeVar

from gyrostat.wire import RightsError
from gyrostat.wire.fields import MessageError, read, text, whole
from gyrostat.wire.rights import check_folder, read_trusted
from gyrostat_agent.cluster.election import STOP_AFTER
from gyrostat_agent.cluster.lease import Holding, LeaseError, Wish

_MOST_BYTES = 64 << 10
_MOST_TERM = 1 << 50  # beyond, it was no election that counted
_Said = TypeVar("_Said", Holding, Wish)
_CLAIM = re.compile(r"leader\.(\d{1,15})\.claim")


class FileLease:
    """The lease of ``run`` in the folder ``root``, which runs may share; ``clock`` gives monotonic seconds."""

    def __init__(self, root: str, run: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._base = os.path.join(root, ".gyrostat")
        self._folder = os.path.join(self._base, f"run-{run}")
        self._clock = clock
        self._path = os.path.join(self._folder, "leader.json")
        self._wish = os.path.join(self._folder, "leader.wish.json")
        self._claimed = 0  # the newest term that another was found to have claimed

    def who(self) -> Holding:
        """What it says now; raises LeaseError."""
        return self._read(self._path, _holding, Holding())

    def preferred(self) -> Wish:
        """Who would rather have it; raises LeaseError."""
        return self._read(self._wish, _wished, Wish())

    def try_take(self, seen: Holding, node: str, address: str, least: int = 0) -> Holding | None:
        """Claim the next term and write it down; None where another was faster. Raises LeaseError."""
        began = self._clock()
        # A claim that nothing came of is of an agent that died on its way: the term behind it is the next one.
        term = max(seen.term, self._claimed, least) + 1
        held = Holding(term, node, address, 1)
        if not self._claim(held):
            self._claimed = term
            return None
        if self.who() != seen:
            return None
        self._write(self._path, held._asdict())
        late = self._clock() - began >= STOP_AFTER - 1.0  # whoever claimed the next term meanwhile may be at work
        if late or self.who() != held:
            return None
        self._sweep(term)
        return held

    def renew(self, held: Holding) -> Holding | None:
        """Show life; None where a newer term stands there. Raises LeaseError."""
        if self.who().term > held.term or self._is_claimed(held.term + 1):
            return None
        new = held._replace(beat=held.beat + 1)
        self._write(self._path, new._asdict())
        return new

    def release(self, held: Holding, promised: str = "") -> None:
        """Give it back, where it still is ours; raises LeaseError."""
        if self.who() == held:
            back = held._replace(holder="", address="", beat=held.beat + 1, promised=promised)
            self._write(self._path, back._asdict())

    def prefer(self, wish: Wish) -> None:
        """Say that this node would rather have it; raises LeaseError."""
        self._write(self._wish, wish._asdict())

    def _claim(self, held: Holding) -> bool:
        draft = self._draft(held._asdict(), held.holder)
        try:
            os.link(draft, self._claim_path(held.term))
            return True
        except FileExistsError:
            return False
        except OSError as error:
            raise self._trouble(error) from None
        finally:
            with contextlib.suppress(OSError):
                os.unlink(draft)

    def _is_claimed(self, term: int) -> bool:
        """Whether somebody is about to lead: a deposed leader must not write over them."""
        return os.path.lexists(self._claim_path(term))

    def _claim_path(self, term: int) -> str:
        return os.path.join(self._folder, f"leader.{term}.claim")

    def _sweep(self, term: int) -> None:
        """Let go of claims that no observer can still be about to make."""
        with contextlib.suppress(OSError):
            for name in os.listdir(self._folder):
                if (found := _CLAIM.fullmatch(name)) and int(found[1]) < term - 1:
                    os.unlink(os.path.join(self._folder, name))

    def _read(self, path: str, build: Callable[[dict[str, Any]], _Said], none: _Said) -> _Said:
        try:
            check_folder(self._base)
            check_folder(self._folder)
            return read("lease", read_trusted(path, _MOST_BYTES), build)
        except FileNotFoundError:
            return none
        except (OSError, RightsError, MessageError) as error:
            raise LeaseError(f"{path} cannot be read: {error}") from None

    def _write(self, path: str, said: dict[str, object]) -> None:
        draft = self._draft(said, os.path.basename(path))
        try:
            os.rename(draft, path)
        except OSError as error:
            raise self._trouble(error) from None

    def _draft(self, said: dict[str, object], what: str) -> str:
        draft = os.path.join(self._folder, f".{what.replace('/', '_')}.{os.uname().nodename}.{os.getpid()}.draft")
        try:
            for folder in (self._base, self._folder):
                os.makedirs(folder, mode=0o700, exist_ok=True)
            fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            with os.fdopen(fd, "wb", buffering=0) as out:
                out.write(json.dumps(said).encode())
                os.fsync(out.fileno())
        except OSError as error:
            raise self._trouble(error) from None
        return draft

    def _trouble(self, error: OSError) -> LeaseError:
        return LeaseError(f"{self._folder}: the lease cannot be written: {error.strerror or error}")


def _holding(raw: dict[str, Any]) -> Holding:
    found = Holding(
        whole(raw, "term"), text(raw, "holder"), text(raw, "address"), whole(raw, "beat"), text(raw, "promised")
    )
    if not 0 <= found.term < _MOST_TERM:
        raise MessageError(f"'term' is {found.term}, which no election has counted")
    return found


def _wished(raw: dict[str, Any]) -> Wish:
    return Wish(text(raw, "node"), whole(raw, "beat"))
