"""Corpus lines: a run written down as cases are, one JSON object a signal; what belongs together shares ``group``.

Fields are those of the public corpus: id, source, trainer, kind, signal, series, healthy, onset_step,
must_fire_by_step, right_action, note, group, step_basis, evidence, replay. A number that is not finite is the string
"NaN", "Infinity" or "-Infinity". Steps go back within a series where the run was resumed.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from course import Run
from kinds import KINDS, deadline, reason

DIGITS = 6  # significant ones: more than any trainer prints
SOURCE = "generated"


def lines(run: Run, split: str) -> Iterator[str]:
    """One line a signal that the run tells, without the newline."""
    shared = facts(run, split)
    for place, (signal, column) in enumerate(run.course.columns.items()):
        series = told(run.course.steps, column)
        if series:
            yield line({"id": f"{shared['group']}-{place:02d}", "signal": signal, "series": series, **shared})


def line(case: Mapping[str, Any]) -> str:
    """A case as text: the same case gives the same bytes."""
    return json.dumps(case, separators=(",", ":"), allow_nan=False)


def facts(run: Run, split: str) -> dict[str, Any]:
    """What all lines of a run have in common."""
    fault, steps = run.fault, run.course.steps
    kind = fault.kind if fault else run.tempts
    note = f"{run.family}: {fault.note}; {reason(kind)}" if fault else f"{run.family}: {run.note}"
    return {
        "source": SOURCE,
        "trainer": run.course.trainer,
        "kind": kind,
        "healthy": fault is None,
        "onset_step": steps[fault.onset] if fault else None,
        "must_fire_by_step": steps[min(len(steps) - 1, deadline(kind, fault.plain))] if fault else None,
        "right_action": KINDS[kind].action if fault else "nothing",
        "note": note,
        "group": f"{run.family}-{run.seed}",
        "step_basis": "step",
        "evidence": "series",
        "replay": True,
        "family": run.family,
        "split": split,
    }


def told(steps: Sequence[int], column: Sequence[float | None], digits: int = DIGITS) -> list[list[Any]]:
    """``[step, value]`` of each row that tells a value."""
    return [[step, shown(value, digits)] for step, value in zip(steps, column, strict=True) if value is not None]


def shown(value: float, digits: int = DIGITS) -> Any:
    """A number of so many digits, whole where it is; text where it is not finite."""
    if math.isfinite(value):
        rounded = float(f"{value:.{digits}g}")
        return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
