"""A trainer under control, and the ways in which a file that it is to believe can be spoilt."""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gyrostat import Control, Knob, Telemetry
from gyrostat.wire import KnobChange

CHANGE = (KnobChange("lr", 1.0, 0.5),)


class Trainer:
    """A trainer with two knobs and a few procedures, and what was done to it."""

    def __init__(self, run: Path, collective: Any = None, **who: int) -> None:
        self.values = {"lr": 1.0, "clip": 0.2}
        self.done: list[Mapping[str, Any]] = []
        self.telemetry = Telemetry(run, **who)  # type: ignore[arg-type]
        procedures: dict[str, Callable[[Mapping[str, Any]], Mapping[str, Any] | None]] = {
            "checkpoint": self._checkpoint,
            "rollback": self._checkpoint,
            "break": self._break,
            "mumble": lambda _: {"tensor": object()},
        }
        knobs = [self._knob("lr"), self._knob("clip")]
        self.control = Control(self.telemetry, knobs, procedures, collective=collective)

    def _knob(self, name: str) -> Knob:
        def turn(value: float) -> None:
            self.values[name] = value

        return Knob(name, lambda: self.values[name], turn, 0.01, 2.0, max_factor=2.0, max_step=0.6)

    def _checkpoint(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        self.done.append(arguments)
        return {"step": 30}

    def _break(self, arguments: Mapping[str, Any]) -> None:
        self.values.update(lr=7.0)
        raise RuntimeError("no such checkpoint\nsecond line")


def open_to_others(path: Path) -> None:
    path.chmod(0o666)


def linked(path: Path) -> None:
    path.rename(path.with_name("real.json"))
    path.symlink_to(path.with_name("real.json"))


def fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


def gone(path: Path) -> None:
    path.unlink()


def enormous(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b" " * (2 << 20))


def half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:40])


def deep(path: Path) -> None:
    path.write_bytes(b"[" * 100_000)


def nan_literal(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'"value":0.5', b'"value":NaN'))


def infinite_value(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'"value":0.5', b'"value":1e999'))


def never_expires(path: Path) -> None:
    raw = json.loads(path.read_bytes())
    path.write_text(json.dumps({**raw, "expires_at": "nan"}))


def knobs_are_words(path: Path) -> None:
    raw = json.loads(path.read_bytes())
    path.write_text(json.dumps({**raw, "knobs": ["lr"]}))


def folder_open_to_others(path: Path) -> None:
    path.parent.chmod(0o777)


def folder_linked(path: Path) -> None:
    path.parent.rename(path.parent.with_name("real"))
    path.parent.symlink_to(path.parent.with_name("real"))
