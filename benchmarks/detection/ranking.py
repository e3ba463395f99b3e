"""Ranking: the entrants beside each other, each rival at the false alarms that Gyrostat gives; as a table and as JSON.

A rival's best setting is chosen on the very corpus that it is then judged by, which is more than a user could do.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from standing import OURS, Standing, figures

_HEAD = (
    "tool", "setting", "found in time", "recall", "precision", "false alarms in 1,000 healthy steps",
    "onset error (steps)", "CPU s a 1,000 rows",
)  # fmt: skip
AT_OURS = "at our false alarms"


def matched(all_of: Sequence[Standing], noise: float | None) -> Standing | None:
    """The best recall among the settings whose false alarms are not above ``noise``; None where none is so quiet."""
    quiet = [one for one in all_of if noise is None or one.noise is None or one.noise <= noise]
    return max(quiet, key=lambda one: (one.recall or 0.0, -(one.noise or 0.0)), default=None)


def ahead(standings: Sequence[Standing]) -> list[str]:
    """The rivals that come to our recall or more at our false alarms, in words; none where we are ahead of all."""
    first = _ours(standings)
    best = [(name, matched(all_of, first.noise)) for name, all_of in _rivals(standings).items()]
    return [
        f"{name} finds {one.recall:.1%} of the faults at our false alarms ({one.entrant.words}), we {first.recall:.1%}"
        for name, one in best
        if one is not None and one.recall is not None and first.recall is not None and one.recall >= first.recall > 0
    ]


def table(standings: Sequence[Standing]) -> Iterator[str]:
    """Markdown: ours, then each rival as it comes and at our false alarms."""
    yield f"| {' | '.join(_HEAD)} |"
    yield f"|{'---|' * len(_HEAD)}"
    first = _ours(standings)
    yield _line(first.entrant.name, first.entrant.words, first)
    for name, all_of in _rivals(standings).items():
        yield _line(name, f"as it comes: {all_of[0].entrant.words}", all_of[0])
        best = matched(all_of, first.noise)
        yield _line(name, f"{AT_OURS}: {best.entrant.words}" if best else f"{AT_OURS}: no setting is so quiet", best)
    for one in standings:
        if one.broken:
            yield f"\n{one.entrant.name} ({one.entrant.words}) broke off in {one.broken} runs: {one.why}"


def as_json(standings: Sequence[Standing]) -> dict[str, Any]:
    """All settings of all; ``at_our_false_alarms`` names the one of each rival, or null."""
    noise = _ours(standings).noise
    best = {name: matched(all_of, noise) for name, all_of in _rivals(standings).items()}
    return {
        "entrants": [figures(one) for one in standings],
        "at_our_false_alarms": {name: one and figures(one) for name, one in best.items()},
        "not_behind_us": ahead(standings),
    }


def _ours(standings: Sequence[Standing]) -> Standing:
    return next(one for one in standings if one.entrant.name == OURS)


def _rivals(standings: Sequence[Standing]) -> Mapping[str, list[Standing]]:
    found: dict[str, list[Standing]] = {}
    for one in standings:
        if one.entrant.name != OURS:
            found.setdefault(one.entrant.name, []).append(one)
    return found


def _line(name: str, words: str, one: Standing | None) -> str:
    if one is None:
        return f"| {name} | {words} |{' - |' * (len(_HEAD) - 2)}"
    said = figures(one)
    cells = (
        f"{said['found']} of {said['faulty']}", _part(said["recall"]), _part(said["precision"]),
        _number(said["false_alarms_per_1000"], ".2f"), _number(said["onset_error"], "g"),
        _number(said["seconds_per_1000_rows"], ".3f"),
    )  # fmt: skip
    return f"| {name} | {words} | {' | '.join(cells)} |"


def _part(value: float | None) -> str:
    return _number(value, ".1%")


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)
