"""Chronicle: one journal read for evidence, from its first turn to its last.

It is walked first: of a journal whose chain is broken nothing is believed.
"""

import hashlib
from collections.abc import Iterator
from contextlib import closing, suppress
from functools import lru_cache
from typing import NamedTuple

from gyrostat_agent.errors import DistrustError
from gyrostat_agent.journal import GoneError, Journal, JournalError, Turn, decode_entry
from gyrostat_agent.shadow.occasion import Occasion
from gyrostat_agent.shadow.watch import WITHIN, Watch
from gyrostat_rules import snapshot
from gyrostat_rules.arming import substance
from gyrostat_rules.engine import Engine
from gyrostat_rules.inputs import Batch, Command, Input, Pack, Tick, Verb
from gyrostat_rules.packfile import PackError, parse


class Chronicle(NamedTuple):
    """One run's evidence. ``began`` (Unix seconds of its first turn) and ``run`` tell a journal from any other;
    ``head`` and ``turns`` how far this copy of it goes. ``mode`` is the newest one; ``pack``: the rules in force at its
    end, as text.
    """

    path: str
    run: str
    began: float
    head: str
    turns: int
    within: int
    steps: int
    healthy: int
    occasions: tuple[Occasion, ...]
    mode: str = ""
    pack: str = ""


def read(path: str, within: int = WITHIN) -> Chronicle:
    """The journal at ``path``, read; raises DistrustError where it cannot be opened, read or believed."""
    try:
        with closing(Journal(path, readonly=True)) as journal:
            verdict = journal.verify()
            if not verdict.ok:
                raise DistrustError(f"{path}: its chain is broken at turn {verdict.broken_at}: {verdict.why}")
            return _read(path, journal, within)
    except JournalError as error:
        raise DistrustError(str(error)) from None


def _read(path: str, journal: Journal, within: int) -> Chronicle:
    watch, began, run, mode, pack, turns = Watch(within), 0.0, "", "shadow", _last_pack(journal), 0
    watch.names = declarations(pack)  # until a turn says otherwise: the one that did may have been let go
    for turn in _turns(journal):
        began, turns = began or turn.at, turn.seq
        if isinstance(turn.given, Pack):
            pack, watch.names = turn.given.text, declarations(turn.given.text)
        elif isinstance(turn.given, Command) and turn.given.verb == Verb.CONFIGURE:
            mode, run = str(turn.given.arguments.get("mode", mode)), run or str(turn.given.arguments.get("run", ""))
        elif isinstance(turn.given, Command) and turn.given.verb == Verb.LEDGER:
            watch.course.take_ledger(turn.given.arguments)
        run = run or _named(turn.given)
        watch.turn(turn.given, turn.entries)
    occasions = tuple(watch.close())
    steps = watch.steps
    head = journal.head()
    return Chronicle(path, run, began, head, turns, within, steps.told, steps.healthy, occasions, mode, pack)


def _turns(journal: Journal) -> Iterator[Turn]:
    """All turns; of one whose input was let go, its entries alone, as if only time had passed."""
    after, at = 0, 0.0
    while True:
        try:
            for turn in journal.turns(after):
                yield turn
                after, at = turn.seq, turn.at
            return
        except GoneError:
            after += 1
            entries = tuple(decode_entry(body) for body in journal.bodies(after, after).get(after, ()))
            at = entries[-1].at if entries else at
            yield Turn(after, at, Tick(at), entries)


def _last_pack(journal: Journal) -> str:
    """The rules of the newest snapshot, as text; '' where there is none, or another version wrote it."""
    with suppress(ValueError, TypeError):
        if found := journal.snapshot():
            return Engine.restore(found[1]).state.pack_text
    return ""


def _named(given: Input) -> str:
    items = given.items if isinstance(given, Batch) else ()
    return next((run for item in items if (run := getattr(item, "run", ""))), "")


@lru_cache(maxsize=8)
def declarations(text: str) -> dict[str, str]:
    """A short name of each rule as this pack declares it; none of a pack of another version."""
    try:
        pack = parse(text)
    except PackError:
        return {}
    found = ((rule.alert, substance(pack, rule.alert)) for rule in pack.rules)
    return {name: _digest(snapshot.dump(declared)) for name, declared in found if declared is not None}


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=8).hexdigest()
