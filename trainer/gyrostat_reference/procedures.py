"""Procedures: what the sidecar may ask of the trainer beside turning knobs.

Each checks everything it was told before it touches the trainer and raises ValueError otherwise, which
Control answers with; after a raise the trainer is as it was. Each returns what it came to, for the Ack.
"""

import time
from collections.abc import Mapping
from typing import Any

from gyrostat.control import Procedure
from gyrostat_reference.trainer import Trainer

_A_DAY = 86400


class Procedures:
    """The procedures of one trainer."""

    def __init__(self, trainer: Trainer) -> None:
        self._trainer = trainer

    def offered(self) -> dict[str, Procedure]:
        """By name, as Hello shows them; those on checkpoints only where the run keeps any."""
        always: dict[str, Procedure] = {
            "skip_data": self.skip_data, "pause": self.pause, "resume": self.resume, "stop": self.stop,
        }  # fmt: skip
        with_checkpoints: dict[str, Procedure] = {"rollback": self.rollback, "checkpoint": self.checkpoint}
        return {**always, **with_checkpoints} if self._trainer.keeper.writer is not None else always

    def rollback(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Go back to a checkpoint and forward in the data.

        Arguments: ``checkpoint`` (path), ``digest`` (of its manifest), ``step``, ``pass_over`` (item ids), and
        ``reset_moments`` (false where absent).
        """
        trainer = self._trainer
        path, digest = _text(arguments, "checkpoint"), _text(arguments, "digest")
        items = trainer.data.checked(_list(arguments, "pass_over"))
        reset = _flag(arguments, "reset_moments", default=False)
        checkpoint = trainer.load(path, digest)
        if arguments.get("step", checkpoint.manifest.step) != checkpoint.manifest.step:
            raise ValueError(f"{path} is of step {checkpoint.manifest.step}, not {arguments['step']}")
        trainer.go_back(checkpoint, items, reset_moments=reset)
        trainer.fuse.reached("procedure.done")
        place = trainer.data.place
        return {"step": trainer.step, "passed_over": sorted(place.passed_over), "cursor": place.cursor}

    def checkpoint(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Begin a checkpoint of the last finished step. It is complete once its folder has its name."""
        folder = self._trainer.begin_checkpoint()
        if folder is None:
            raise ValueError("a checkpoint is being written; ask again at a later step")
        self._trainer.fuse.reached("procedure.done")
        return {"step": self._trainer.step, "checkpoint": str(folder)}

    def skip_data(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Never serve items again, and do not try the present batch again.

        Arguments: ``items`` (ids), or ``cursor`` [low, high): the places at which they lay.
        """
        data = self._trainer.data
        if ("items" in arguments) == ("cursor" in arguments):
            raise ValueError("skip_data takes either 'items' or 'cursor'")
        if "items" in arguments:
            items = data.checked(_list(arguments, "items"))
        else:
            items = data.checked({data.item_at(place) for place in _range(arguments, data.size)})
        self._trainer.pass_over(items)
        self._trainer.fuse.reached("procedure.done")
        return {"passed_over": sorted(data.place.passed_over), "cursor": data.place.cursor}

    def pause(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Begin no step until told to resume or stop, for at most ``seconds`` (600 where absent).

        It ends by itself: a sidecar that died must not leave a run standing for ever.
        """
        seconds = arguments.get("seconds", 600)
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 < seconds <= _A_DAY:
            raise ValueError(f"'seconds' is {seconds!r}, not a number above 0 and up to {_A_DAY}")
        self._trainer.paused_until = time.monotonic() + seconds
        self._trainer.fuse.reached("procedure.done")
        return {"step": self._trainer.step, "seconds": seconds}

    def resume(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """End a pause; where there is none, nothing happens."""
        self._trainer.paused_until = 0.0
        self._trainer.fuse.reached("procedure.done")
        return {"step": self._trainer.step}

    def stop(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """End the run at this boundary; no further step is begun."""
        self._trainer.stopping = True
        self._trainer.fuse.reached("procedure.done")
        return {"step": self._trainer.step}


def _text(arguments: Mapping[str, Any], name: str) -> str:
    value = arguments.get(name)
    if not isinstance(value, str) or not value:
        raise ValueError(f"'{name}' is {value!r}, not text")
    return value


def _list(arguments: Mapping[str, Any], name: str) -> list[object]:
    value = arguments.get(name, [])
    if not isinstance(value, list):
        raise ValueError(f"'{name}' is {value!r}, not a list of items")
    return value


def _flag(arguments: Mapping[str, Any], name: str, *, default: bool) -> bool:
    value = arguments.get(name, default)
    if not isinstance(value, bool):
        raise ValueError(f"'{name}' is {value!r}, not true or false")
    return value


def _range(arguments: Mapping[str, Any], longest: int) -> range:
    value = arguments["cursor"]
    good = isinstance(value, list) and len(value) == 2 and all(type(v) is int for v in value)
    if not good or not 0 <= value[0] < value[1] <= value[0] + longest:
        raise ValueError(f"'cursor' is {value!r}, not [low, high] with 0 <= low < high <= low + {longest}")
    return range(value[0], value[1])
