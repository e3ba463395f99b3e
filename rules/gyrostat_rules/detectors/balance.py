"""Experts: how evenly they are used, per layer and loop, against fixed levels and the run's own beginning.

Read are the series that ``experts.series_of`` makes of a record's counts. A model whose base was trained without
balance is told from its first rows on, unless ``relative`` takes its beginning as the measure.
"""

import math
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from gyrostat_rules import experts
from gyrostat_rules.detectors.gauge import ABOVE, BELOW, Gauge
from gyrostat_rules.detectors.reading import Reading
from gyrostat_rules.moment import Moment
from gyrostat_rules.profile import Told, is_fresh, reference, tellers
from gyrostat_rules.state import State, Window


class ExpertBalance(NamedTuple):
    """Breached where rho_eff is below ``rho_below`` or the dead share above ``dead_above``, ``needed`` of ``of`` steps.

    ``relative``, where not 0, is for models whose load is uneven by nature: both must also be worse than that
    share of what they were in the first 20 steps (rho_eff, and the share of experts that live); before, nothing.
    """

    rho_below: float = 0.5
    dead_above: float = 0.2
    relative: float = 0.0
    needed: Annotated[int, Field(ge=1)] = 3
    of: Annotated[int, Field(ge=1, le=64)] = 5


class _Row(NamedTuple):
    """One layer and loop: its name in series, '' for the least balanced of many; limits are values still healthy."""

    name: str
    rho: Window
    dead: Window
    rho_limit: float
    dead_limit: float

    def is_bad(self, rho: float, dead: float) -> bool:
        return rho < self.rho_limit or dead > self.dead_limit


def expert_balance(params: ExpertBalance, state: State, moment: Moment) -> Iterator[Reading]:
    """One reading a layer and loop that is out of balance; for more than 64 of them, one for the worst.

    The onset is the first step of the stretch of breached values: it goes back until two in a row were healthy.
    """
    for told in tellers(state):
        if not is_fresh(told.windows.get(experts.RHO_EFF), told.process):
            continue
        for row in _rows(params, told, moment):
            if _bad(params, row) >= params.needed:
                yield _reading(row, told, moment)


def balance_gauges(params: ExpertBalance, state: State, moment: Moment) -> Iterator[Gauge]:
    """Two gauges a layer and loop: its load, and its dead experts."""
    for told in tellers(state):
        if not is_fresh(told.windows.get(experts.RHO_EFF), told.process):
            continue
        for row in _rows(params, told, moment, every=True):
            place = _place(row, told.windows) if row.name else {}
            labels = {**told.labels, **{k: str(v) for k, v in place.items()}}
            said = f"{_bad(params, row)} of the last {params.of} were uneven, by either, {params.needed} are needed"
            yield Gauge(labels, experts.RHO_EFF, row.rho.values[-1], row.rho_limit, BELOW, said)
            yield Gauge(labels, experts.DEAD_SHARE, row.dead.values[-1], row.dead_limit, ABOVE, said)


def _bad(params: ExpertBalance, row: _Row) -> int:
    """How many of the newest values are breached."""
    recent = zip(row.rho.values[-params.of :], row.dead.values[-params.of :], strict=False)
    return sum(row.is_bad(rho, dead) for rho, dead in recent)


def _rows(params: ExpertBalance, told: Told, moment: Moment, every: bool = False) -> Iterator[_Row]:
    """The rows that may be breached, with their limits; with ``every``, those that are well too."""
    of = params.of
    for name, rho, dead in _told_rows(told, moment):
        if not every and _is_well(params, rho.values[-of:], dead.values[-of:]):
            continue
        rho_limit, dead_limit = params.rho_below, params.dead_above
        if params.relative:
            was, lived = reference(rho), 1.0 - reference(dead)
            if math.isnan(was):
                continue
            rho_limit = min(rho_limit, params.relative * was)
            dead_limit = max(dead_limit, 1.0 - params.relative * lived)
        yield _Row(name, rho, dead, rho_limit, dead_limit)


def _told_rows(told: Told, moment: Moment) -> list[tuple[str, Window, Window]]:
    """Each row's name and windows, of those told of late; looked up once a step for all rules.

    None of a row with too few assignments of late, or one that a jump back has undone.
    """
    key = "rows", told.key
    if key not in moment.looks:
        pairs = ((n, told.windows[f"{experts.RHO_EFF}{n}"], told.windows.get(f"{experts.DEAD_SHARE}{n}"))
                 for n in _row_names(tuple(told.windows)))  # fmt: skip
        moment.looks[key] = [
            (n[1:], rho, dead)
            for n, rho, dead in pairs
            if dead is not None and is_fresh(rho, told.process) and is_fresh(dead, told.process)
        ]
    return moment.looks[key]  # type: ignore[no-any-return]


@lru_cache(maxsize=256)
def _row_names(series: tuple[str, ...]) -> tuple[str, ...]:
    """``/1/0`` for each row; '' where only the worst is told. Not the pool, nor a series of a trainer's own."""
    start = experts.RHO_EFF + "/"
    names = [name[len(start) :] for name in series if name.startswith(start)]
    return tuple(f"/{name}" for name in names if name.replace("/", "", 1).isdecimal()) or ("",)


def _is_well(params: ExpertBalance, rho: list[float], dead: list[float]) -> bool:
    """True for most rows of most runs, cheaply: no relative limit is nearer than the fixed ones."""
    return min(rho) >= params.rho_below and max(dead) <= params.dead_above


def _reading(row: _Row, told: Told, moment: Moment) -> Reading:
    place = _place(row, told.windows)
    labels = {**told.labels, **{k: str(v) for k, v in place.items()}} if row.name else told.labels
    rho, dead = row.rho.values[-1], row.dead.values[-1]
    onset = _onset(row)
    where = f"layer {place['layer']} loop {place['loop']}" if place else "the worst layer"
    why = f"{where} uses {rho:.0%} of its experts' worth and {dead:.0%} of them are dead"
    why += f" (limits {row.rho_limit:.0%} and {row.dead_limit:.0%}), since step {onset}"
    if math.isfinite(was := reference(row.rho)):
        why += f"; at the run's start it was {was:.0%}"
    evidence = {
        **place, "rho_eff": rho, "dead_share": dead, "rho_limit": row.rho_limit, "dead_limit": row.dead_limit,
        **_counted(place, told, moment),
    }  # fmt: skip
    return Reading(labels, rho, onset, why, evidence if math.isnan(was) else {**evidence, "rho_reference": was})


def _place(row: _Row, windows: Mapping[str, Window]) -> dict[str, int]:
    """Layer and loop; nothing where a trainer tells the worst alone and not which it is."""
    if row.name:
        layer, _, loop = row.name.partition("/")
        return {"layer": int(layer), "loop": int(loop)}
    layers, loops = windows.get(experts.WORST_LAYER), windows.get(experts.WORST_LOOP)
    return {"layer": int(layers.values[-1]), "loop": int(loops.values[-1])} if layers and loops else {}


def _counted(place: Mapping[str, int], told: Told, moment: Moment) -> dict[str, Any]:
    """What the moment's own counts say of the row: nothing where the step told none."""
    for record in moment.records:
        if record.load is not None and (record.role, record.rank) == (told.process.role, told.process.rank):
            for layer, loop, counts in record.load.rows():
                if {"layer": layer, "loop": loop} == place:
                    top = experts.balance(counts).top_share
                    return {"assignments": sum(counts), "top_share": top, "load_entropy": experts.evenness(counts)}
    return {}


def _onset(row: _Row) -> int:
    first, healthy = row.rho.steps[-1], 0
    pairs = zip(reversed(row.rho.steps), reversed(row.rho.values), reversed(row.dead.values), strict=False)
    for step, rho, dead in pairs:
        if row.is_bad(rho, dead):
            first, healthy = step, 0
        elif (healthy := healthy + 1) == 2:
            break
    return first
