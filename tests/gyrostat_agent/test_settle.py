"""Settling: what an agent that died between its journal and its directive does about it when it begins again."""

import pytest
from agent_runs import NAN, Bench

from gyrostat_agent import failpoints
from gyrostat_agent.sources.commands import give
from gyrostat_rules.inputs import Verb


class _Struck(BaseException):
    """The process is gone."""


def die_before_the_directive(bench: Bench, monkeypatch: pytest.MonkeyPatch, **settings: object) -> None:
    """An agent that has decided and written it down, and goes before it could lay the directive."""
    agent = bench.agent(**settings)
    bench.verdicts.tell(f"{bench.root}/step-1", 1)
    for step in range(1, 30):
        bench.tell(step)
    agent.once()
    if settings:
        give(bench.run, Verb.ROLLBACK, {"to": "1", "by": "Ada"})
    else:
        bench.tell(30, NAN, 0.0)
        bench.tell(31, NAN, 0.0)

    def die(point: str) -> None:
        if point == "turn.committed" and any(i.state == "acting" for i in agent.engine.state.incidents):
            raise _Struck

    monkeypatch.setattr(failpoints, "strike", die)
    with pytest.raises(_Struck):
        agent.once()
    monkeypatch.setattr(failpoints, "strike", None)
    agent.abandon()
    assert bench.directives() == []


@pytest.mark.parametrize(
    ("words", "laid"),
    [([], True), ([Verb.PAUSE], False), ([Verb.PAUSE, Verb.RESUME], True)],
    ids=["nothing said", "paused meanwhile", "paused and resumed"],
)
def test_a_pause_given_while_the_agent_is_down_is_heard_first(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, words: list[str], laid: bool
) -> None:
    """Who pauses because the agent is gone must not see it go on where it was when it comes back."""
    bench.control()
    die_before_the_directive(bench, monkeypatch)
    for word in words:
        give(bench.run, word, {"by": "Ada"})
    again = bench.agent()
    again.once()
    assert bool(bench.directives()) is laid


def test_what_a_person_asked_for_is_done_in_shadow_too(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rollback by name goes in whatever mode; an agent that died on the way does not forget it for the mode."""
    bench.control()
    die_before_the_directive(bench, monkeypatch, mode="shadow")
    bench.agent(mode="shadow").once()
    assert len(bench.directives()) == 1
