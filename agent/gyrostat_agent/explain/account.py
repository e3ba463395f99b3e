"""Account: a run's journal replayed for the sake of one rule, read only, and what came of it.

The rules are those that the run had, or those of another pack: then what is told is what that pack would have said,
with the run as it went.
"""

import difflib
import os
from typing import NamedTuple

from gyrostat.wire import RunDirectory
from gyrostat_agent.errors import DistrustError, SetupError
from gyrostat_agent.explain.witness import Witness
from gyrostat_agent.journal import Journal, JournalError, Turn
from gyrostat_agent.journal.stretches import stretches
from gyrostat_agent.recovery import same
from gyrostat_rules.detectors.looks import found
from gyrostat_rules.engine import Engine
from gyrostat_rules.inputs import Input, Pack
from gyrostat_rules.pack import Rule, RulePack
from gyrostat_rules.packfile import PackError
from gyrostat_rules.state import State
from gyrostat_rules.wants import heard, wants


class Account(NamedTuple):
    """What one rule saw of a run. ``differs``: the first turn that the rules decide otherwise now, 0 where none does.

    ``told``: the series that each process told, by its name in the state; ``looked``: those of them that the rule looks
    at. ``silent``: it has nothing to look at; ``unmet``: what it would look at and nobody tells now.
    """

    rule: Rule
    pack: RulePack
    witness: Witness
    run: str
    turns: int
    differs: int
    told: dict[str, tuple[str, ...]]
    looked: dict[str, tuple[str, ...]]
    silent: bool
    unmet: tuple[str, ...]


def account(run: RunDirectory, name: str, step: int | None, pack: Pack | None = None) -> Account:
    """Replay the run for the rule of that name; ``pack`` in place of the run's own, where given.

    Raises SetupError for a rule that the pack has not, or a step that the run never told; DistrustError where the
    journal cannot be read.
    """
    witness, turns, differs = Witness(name, step), 0, 0
    engine = Engine(watch=witness.watch)
    try:
        journal = Journal(os.path.join(run.agent, "journal.db"), readonly=True)
        after = _taken_up(journal, engine, pack)
        for turn in journal.turns(after):
            again = engine.feed(_given(turn, pack))
            turns = turn.seq
            differs = differs or (turn.seq if pack is None and not same(again, turn.entries) else 0)
    except JournalError as error:
        raise DistrustError(str(error)) from None
    except PackError as error:
        first = str(error).splitlines()[0]
        raise DistrustError(
            f"the pack that this run had is another version's ({first}); give --pack builtin, or a file, to ask what "
            "its rules would have said"
        ) from None
    rules = witness.pack
    if rules is None or not engine.state.pack_text:
        raise SetupError(f"{run.path}: its journal holds no rules yet; ask again when the agent has begun")
    rule = find(rules, name, f"the run's pack {rules.name}" if pack is None else f"pack {rules.name}")
    _must_hold(run, witness, step)
    return _account(run, rule, rules, witness, engine.state, turns, differs)


def _taken_up(journal: Journal, engine: Engine, pack: Pack | None) -> int:
    """Where inputs were let go, begin from the snapshot behind them; the turn behind which to begin."""
    newest = next(iter(stretches(journal)[-1:]), None)
    if newest is None or newest.state is None:
        return newest.after if newest else 0
    try:
        engine.state = Engine.restore(newest.state).state
    except (TypeError, ValueError):
        raise DistrustError(
            f"the inputs up to turn {newest.after} were let go, and the snapshot there is another version's: "
            "ask that version"
        ) from None
    if pack is not None:
        engine.feed(pack._replace(at=0.0))
    return newest.after


def find(pack: RulePack, name: str, where: str) -> Rule:
    """The rule of that name; raises SetupError with the nearest names where there is none."""
    names = {rule.alert: rule for rule in pack.rules}
    if name in names:
        return names[name]
    small = {known.lower(): known for known in names}
    near = [small[n] for n in difflib.get_close_matches(name.lower(), small, n=3, cutoff=0.5)]
    hint = f"did you mean {' or '.join(near)}?" if near else "`gyrostat rules list` shows them all"
    raise SetupError(f"{where} has no rule {name}; {hint}")


def _given(turn: Turn, pack: Pack | None) -> Input:
    return pack._replace(at=turn.at) if pack is not None and isinstance(turn.given, Pack) else turn.given


def _must_hold(run: RunDirectory, witness: Witness, step: int | None) -> None:
    if step is None or witness.first <= step <= witness.last:
        return
    what = f"it told steps {witness.first} to {witness.last}" if witness.last >= 0 else "it has told no step yet"
    raise SetupError(f"--step {step}: {run.path} has no such step; {what}")


def _account(
    run: RunDirectory, rule: Rule, pack: RulePack, witness: Witness, state: State, turns: int, differs: int
) -> Account:
    told = {key: tuple(windows) for key, windows in state.windows.items()}
    looked = {key: set(found(_names(rule), names)) for key, names in told.items()}
    for extreme in witness.newest.values():
        labels = extreme.gauge.labels
        looked.setdefault(f"{labels.get('role', '')}/{labels.get('rank', '0')}", set()).add(extreme.gauge.series)
    by_name = {key: tuple(sorted(filter(None, names))) for key, names in looked.items()}
    now = heard(state)
    unmet = tuple(want.words for want in wants(rule) if not want.met(now))
    silent = len(unmet) == len(wants(rule))
    by_name = {key: names for key, names in by_name.items() if names}
    return Account(rule, pack, witness, state.run, turns, differs, told, by_name, silent, unmet)


def _names(rule: Rule) -> tuple[str, ...]:
    """The series that a rule's parameters name, as a pack writes them."""
    given = rule.params._asdict()
    names = [given.get(field, ()) for field in ("series", "rising", "falling", "rates", "part", "whole")]
    return tuple(n for some in names for n in ((some,) if isinstance(some, str) else some))
