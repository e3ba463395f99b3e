"""Exported: a report written as JSON, and read back as evidence: it outlives the runs that it was made of."""

from collections.abc import Mapping
from typing import Any

from gyrostat_agent.shadow.chronicle import Chronicle
from gyrostat_agent.shadow.occasion import Occasion, Verdict
from gyrostat_rules.plausible import misfit

KIND, VERSION = "gyrostat shadow report", 1
_VERDICTS = (Verdict.HIT, Verdict.MISS, Verdict.UNDECIDED, Verdict.ACTED)
_NOT_WRITTEN = ("pack",)  # tens of KiB of text that the occasions' ``declared`` stand for


def is_report(raw: Any) -> bool:
    """True for what looks like a report."""
    return isinstance(raw, dict) and raw.get("what") == KIND


def plain(run: Chronicle) -> dict[str, Any]:
    """A run's evidence as JSON has it."""
    said = {name: value for name, value in run._asdict().items() if name not in _NOT_WRITTEN}
    return {**said, "occasions": [occasion._asdict() for occasion in run.occasions]}


def chronicles(path: str, raw: Mapping[str, Any], within: int) -> list[Chronicle]:
    """The runs of a report; raises ValueError where one is not as it is written here, or was judged otherwise."""
    if raw.get("version") != VERSION:
        raise ValueError(f"it is of version {raw.get('version')!r}, and this Gyrostat reads version {VERSION}")
    runs = raw.get("runs")
    if not isinstance(runs, list):
        raise ValueError("it holds no list of runs")
    return [_run(path, one, within) for one in runs]


def _run(path: str, raw: Any, within: int) -> Chronicle:
    try:
        occasions = tuple(Occasion(**one) for one in raw["occasions"])
        found = Chronicle(**{**raw, "path": path, "occasions": occasions})
    except (TypeError, KeyError) as error:
        raise ValueError(f"a run of it is not as it is written here: {error}") from None
    if why := misfit(Chronicle, found, "run"):
        raise ValueError(why)
    if odd := next((one.verdict for one in occasions if one.verdict not in _VERDICTS), None):
        raise ValueError(f"no occasion is {odd[:40]!r}")
    if found.within != within:
        raise ValueError(f"it gave {found.within} steps to come back, and {within} are asked for: give the journals")
    return found
