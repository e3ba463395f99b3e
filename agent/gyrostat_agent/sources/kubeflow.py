"""KubeflowIn: what transformers' KubeflowCallback posts while it trains, as rows of its steps.

Written from transformers 5.24 (integrations/integration_utils.py). A post is sent at most every 5 s, at the end of a
step and before that step's own log: it holds the newest logged values whatever their age, beside ``current_step``.
So values are of the step before, at the latest, and those that have been posted before are passed over: a NaN that
was logged once must not seem to go on. The trainer waits for the answer, 5 s at most.
"""

import json
import threading
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from gyrostat.wire.fields import clean
from gyrostat_agent.sources.httpin import JSON, Answer
from gyrostat_agent.sources.logs.numerals import number
from gyrostat_agent.sources.logs.said import EVAL, TRAIN, Told
from gyrostat_agent.sources.postbox import PostBox

PATH = "/kubeflow/status"  # KUBEFLOW_TRAINER_SERVER_URL=http://127.0.0.1:4318/kubeflow/status
_PROGRESS = ("current_step", "total_steps", "current_epoch")
_NAMES = 1000
_LENGTH = 200


class KubeflowIn:
    """``wake`` is called, from a server's thread, when there is something to drain.

    ``progress`` is the newest percentage, -1 before the first. ``nonsense``: posts that were no status.
    """

    def __init__(self, wake: Callable[[], None] = lambda: None) -> None:
        self._box = PostBox(wake)
        self._lock = threading.Lock()
        self._step = -1  # the newest that was posted as current
        self._posted: dict[str, dict[str, str]] = {TRAIN: {}, EVAL: {}}
        self.progress = -1
        self.nonsense = 0

    def take(self, body: bytes, kind: str) -> Answer:
        """One post; 400 and a line where it is nonsense."""
        try:
            if kind != JSON:
                raise ValueError(f"this is {kind}; post {JSON}")
            status = _status(body)
            metrics = _metrics(status)
        except (ValueError, RecursionError) as error:
            self.nonsense += 1
            return Answer(400, json.dumps({"error": clean(str(error))}).encode())
        with self._lock:
            if self._box.full:
                return Answer(503, b'{"error": "the agent does not keep up; post it again"}')
            self._box.put(self._rows(status, metrics))
        return Answer(200)

    def drain(self) -> list[Told]:
        """The rows since the last call."""
        return self._box.drain()

    def _rows(self, status: Mapping[str, Any], metrics: dict[str, str]) -> list[Told]:
        progress, current = status.get("progressPercentage"), number(metrics.get("current_step", ""))
        self.progress = progress if isinstance(progress, int) and 0 <= progress <= 100 else self.progress
        if current is None and self.progress == 0:  # it begins: what an earlier life has said is no repetition
            self._step, self._posted = -1, {TRAIN: {}, EVAL: {}}
        if current is not None and 0 <= current < 1e15:
            self._step, step = int(current), max(0, int(current) - 1)
        else:  # the last post names no step; it holds the log of the last one, which is no earlier than the newest
            step = self._step
        parts = _parts({n: v for n, v in metrics.items() if n not in _PROGRESS})
        at = _seconds(status.get("lastUpdatedTime"))
        return [Told(_numbers(part), step if step >= 0 else None, phase, at=at) for phase, part in self._new(parts)]

    def _new(self, parts: dict[str, dict[str, str]]) -> list[tuple[str, dict[str, str]]]:
        """The parts that are of a log that was not posted before; an evaluation logs the epoch too, and no more."""
        changed = {phase: _changed(part, self._posted[phase]) for phase, part in parts.items()}
        self._posted = parts
        if changed[EVAL] and changed[TRAIN] <= {"epoch"}:
            changed[TRAIN] = set()
        return [(phase, parts[phase]) for phase in (TRAIN, EVAL) if changed[phase]]


def _status(body: bytes) -> dict[str, Any]:
    try:
        status = json.loads(body)["trainerStatus"]
    except ValueError as error:
        raise ValueError(f"this is not JSON: {error}") from None
    except (KeyError, TypeError):
        raise ValueError("this is no status: it must be a mapping with trainerStatus") from None
    if not isinstance(status, dict):
        raise ValueError("trainerStatus must be a mapping")
    return status


def _metrics(status: Mapping[str, Any]) -> dict[str, str]:
    """Name and value, both text, as they stand."""
    rows = status.get("metrics") or []
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError("trainerStatus.metrics must be a list of mappings with name and value")
    return {clean(str(r.get("name", "")))[:_LENGTH]: str(r.get("value", ""))[:_LENGTH] for r in rows[:_NAMES]}


def _parts(metrics: Mapping[str, str]) -> dict[str, dict[str, str]]:
    parts: dict[str, dict[str, str]] = {TRAIN: {}, EVAL: {}}
    for name, value in metrics.items():
        parts[EVAL if name.startswith(("eval_", "test_")) else TRAIN][name] = value
    return parts


def _changed(now: Mapping[str, str], before: Mapping[str, str]) -> set[str]:
    return {name for name, value in now.items() if before.get(name) != value}


def _numbers(part: Mapping[str, str]) -> dict[str, float]:
    found = {name: number(value) for name, value in part.items() if name}
    return {name: value for name, value in found.items() if value is not None}


def _seconds(said: Any) -> float | None:
    try:
        return datetime.fromisoformat(said).timestamp()
    except (TypeError, ValueError, OverflowError, OSError):
        return None
