"""Many ranks: trainer ranks from the ninth on do what the first eight do, and are looked at for what is theirs alone.

What is not finite, silence, a death, and what ranks are compared by (a straggler) are looked at on every rank. All
other series of theirs are not kept: after an exchange of gradients they say what those of the first ranks say, and a
window a series of 256 ranks would cost more than all rules together.
"""

from collections.abc import Sequence
from functools import lru_cache

from gyrostat.wire import Record
from gyrostat_rules import series
from gyrostat_rules.moment import Moment
from gyrostat_rules.pack import RulePack
from gyrostat_rules.series import measured

WHOLE = 8  # ranks of which every series is kept
_COMPARING = "beside"  # the detector that compares ranks
# By what a value that is not finite is judged, whether or not it shows in the same record.
_CIRCUMSTANCES = (
    series.STEP_APPLIED, series.PARAMS_FINITE, series.GUARD_EXHAUSTED, series.SUSPECT_ITEM, series.DATA_CURSOR,
    series.DATA_ITEMS,
)  # fmt: skip


def is_one_of_many(role: str, rank: int) -> bool:
    """True for a rank that the first ones speak for. GPUs, hosts and engines all speak for themselves."""
    return rank >= WHOLE and role == "trainer"


def first_ranks(moment: Moment) -> Sequence[Record]:
    """The moment's records but for those of the many; picked once a moment."""
    if len(moment.records) <= WHOLE:
        return moment.records
    if "first ranks" not in moment.looks:
        moment.looks["first ranks"] = [r for r in moment.records if not is_one_of_many(r.role, r.rank)]
    return moment.looks["first ranks"]  # type: ignore[no-any-return]


def told_of(record: Record, compared: frozenset[str]) -> Record:
    """What of one of the many is worth telling an agent elsewhere: what is kept of it, and why it may be ill."""
    if not is_one_of_many(record.role, record.rank):
        return record
    names = (*_picked(tuple(record.values), compared), *_CIRCUMSTANCES)
    values = {name: record.values[name] for name in names if name in record.values}
    values.update((name, value) for name, value in record.values.items() if value - value != 0.0)  # not finite
    return record._replace(values=values, load=None)


def compared_in(pack: RulePack) -> frozenset[str]:
    """The series by which a pack's rules compare ranks."""
    return frozenset(name for rule in pack.rules if rule.detector == _COMPARING for name in rule.params.series)


def kept(moment: Moment, record: Record) -> dict[str, float]:
    """The values of one of the many that its windows keep: those that a rule compares ranks by."""
    compared = _compared(moment)
    if not compared:
        return {}
    return {name: record.values[name] for name in _picked(tuple(record.values), compared)}


def _compared(moment: Moment) -> frozenset[str]:
    """The series by which the pack's rules compare ranks; picked once an input."""
    key = "compared", moment.pack.name
    if key not in moment.memo:
        moment.memo[key] = compared_in(moment.pack)
    return moment.memo[key]  # type: ignore[no-any-return]


@lru_cache(maxsize=256)  # all ranks tell the same names, step after step
def _picked(names: tuple[str, ...], compared: frozenset[str]) -> tuple[str, ...]:
    return tuple(name for name in names if name in compared or measured(name) in compared)
