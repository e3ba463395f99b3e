"""expert_load.log: what ``awk '{print $3}' | sort | uniq -c`` counts, step by step, as the engine's own series."""

import random

import pytest

from gyrostat.wire import ExpertLoad
from gyrostat_agent.sources.logs.formats.expertload import EXPERT_LOAD, ExpertLoadReader
from gyrostat_agent.sources.logs.lines import Line, Lines
from gyrostat_agent.sources.logs.said import Said, Told
from gyrostat_rules import experts


def said(*lines: str) -> list[Said]:
    """All that a log of these lines says."""
    reader, text = ExpertLoadReader(), Lines()
    found = [*text.feed("\n".join(lines).encode()), *text.end()]
    return [*(one for line in found for one in reader.read(line)), *reader.end()]


def load(*lines: str) -> ExpertLoad | None:
    """The counts of the step that these lines tell."""
    reader = ExpertLoadReader()
    for line in lines:
        reader.read(Line(line))
    return reader.load()


ROWS: dict[str, tuple[str, tuple[int, int, int]]] = {
    "plain": ("120 1 2", (1, 2, 1)),
    "counted": ("120 1 2 512", (1, 2, 512)),
    "more-behind": ("120 1 2 512 0.125", (1, 2, 512)),
    "weight-behind": ("120 1 2 0.87", (1, 2, 1)),
    "named": ("step=120 layer=1 expert=2", (1, 2, 1)),
    "named-counted": ("step=120 layer=1 expert=2 tokens=512", (1, 2, 512)),
    "named-count": ("step:120 layer:1 expert:2 count:512", (1, 2, 512)),
    "ids": ("step=120 layer_id=1 expert_id=2", (1, 2, 1)),
    "underscored": ("120 layer_1 expert_2", (1, 2, 1)),
    "letters": ("120 L1 E2", (1, 2, 1)),
    "small-letters": ("120 l1 e2 7", (1, 2, 7)),
    "words": ("120 layer1 expert2", (1, 2, 1)),
    "commas": ("120,1,2,512", (1, 2, 512)),
    "commas-and-blanks": ("120, 1, 2, 512", (1, 2, 512)),
    "tabs": ("120\t1\t2\t512", (1, 2, 512)),
    "blanks": ("  120   1   2 ", (1, 2, 1)),
    "global-step": ("global_step=120 layer=1 expert=2", (1, 2, 1)),
    "a-time-instead": ("2026-01-02 03:04:05 2", (0, 2, 1)),
    "a-time-in-brackets": ("[2026-01-02 03:04:05] 2", (0, 2, 1)),
    "token-between": ("120 the 2", (0, 2, 1)),
    "first-expert": ("120 0 0", (0, 0, 1)),
    "last-expert": ("120 0 60", (0, 60, 1)),
    "none-routed": ("120 1 2 0", (1, 2, 0)),
    "capital": ("STEP=120 LAYER=1 EXPERT=2", (1, 2, 1)),
    "rest-of-words": ("120 1 2 routed by top-2", (1, 2, 1)),
}


@pytest.mark.parametrize(("line", "expected"), ROWS.values(), ids=ROWS)
def test_a_line_is_counted(line: str, expected: tuple[int, int, int]) -> None:
    """For the third field's expert: once, or as often as a whole number behind it says."""
    found = load(line)
    layer, expert, count = expected
    assert found is not None and (found.layers, found.loops, found.experts) == (layer + 1, 1, expert + 1)
    assert found.rows()[layer][2][expert] == count == sum(found.counts)


@pytest.mark.parametrize(
    "line", ["", "120 1", "step layer expert", "# step layer expert", "120 1 0.5", "120 1 99999", "a b 3", "120 1 -2"]
)
def test_what_is_no_line_of_it(line: str) -> None:
    """Headers, comments, and ids that are none."""
    assert load(line) is None


def test_steps_are_told_one_by_one() -> None:
    """A step is told when the next begins, and the last at the end, under the engine's names."""
    even = [f"1 0 {e} 100" for e in range(4)]
    dead = ["2 0 0 400", "2 0 1 0", "2 0 2 0", "2 0 3 0"]
    first, second = said(*even, *dead)
    assert isinstance(first, Told) and isinstance(second, Told)
    assert (first.step, second.step) == (1, 2)
    assert (first.values["expert_rho_eff"], first.values["expert_dead_share"]) == (1.0, 0.0)
    assert second.values["expert_dead_share"] == 0.75 and second.values["expert_rho_eff"] < 0.3
    assert second.values["expert_share/0/0"] == 1.0


def test_the_numbers_are_the_engines() -> None:
    """Line by line or counted: the same series as of a trainer that tells its counts itself."""
    random_ = random.Random(7)
    chosen = [(random_.randrange(2), min(random_.randrange(8), random_.randrange(8))) for _ in range(3000)]
    counts = tuple(chosen.count((layer, expert)) for layer in range(2) for expert in range(8))
    [row] = said(*(f"5 {layer} {expert}" for layer, expert in chosen))
    assert row == Told(experts.series_of(ExpertLoad(2, 1, 8, counts)), 5)


def test_an_expert_that_died_is_still_counted() -> None:
    """One that is chosen no more is not told, and must not be forgotten: the log has shown that it is there."""
    lines = [f"1 0 {e} 200" for e in range(4)] + [f"2 0 {e} 200" for e in range(3)]
    last = said(*lines)[-1]
    assert isinstance(last, Told) and last.values["expert_dead_share"] == 0.25


def test_a_step_with_few_lines() -> None:
    """Too few assignments say nothing of balance; those of the steps before are added, as the engine does."""
    assert said("1 0 0", "1 0 1") == []
    rows = said(*(f"{step} 0 {i % 2}" for step in range(4) for i in range(30)))
    assert [row.step for row in rows if isinstance(row, Told)] == [3]


def test_no_step_is_said() -> None:
    """Where a time stands in its place, lines are counted in stretches."""
    rows = said(*(f"2026-01-02 03:04:{i % 60:02} {i % 4}" for i in range(5000)))
    assert [row.step for row in rows if isinstance(row, Told)] == [None, None]


def test_half_and_broken_lines() -> None:
    """Any cut and any changed byte raises nothing."""
    random_ = random.Random(7)
    for line, _ in ROWS.values():
        for end in range(len(line)):
            said(line[:end], line[end:])
    for _ in range(300):
        data = bytearray("\n".join(random_.choice([*ROWS.values()])[0] for _ in range(20)).encode())
        for _ in range(random_.randint(1, 20)):
            data[random_.randrange(len(data))] = random_.randrange(256)
        said(*data.decode("utf-8", "replace").split("\n"))


def test_a_hostile_log_costs_no_more_than_its_length() -> None:
    """Steps that change in each line, with the highest ids there are, do not each make a table of all experts."""
    assert said(*(f"{step} 255 1023" for step in range(20_000))) == []
    assert said("1 " * 200_000, "9" * 200_000 + " 1 1") is not None


def test_how_it_is_recognised() -> None:
    """Surely where experts are named; a little by whole numbers alone."""
    assert EXPERT_LOAD.sign("step=1 layer=2 expert=3") == EXPERT_LOAD.sign("1 layer_2 expert_3 17") == 3
    assert EXPERT_LOAD.sign("120 3 17") == EXPERT_LOAD.sign("120 3 17 512") == 1
    assert [EXPERT_LOAD.sign(one) for one in ("120 0.43", "1 2", "step=1 loss=2 kl=3", "1 2 3 4 5")] == [0] * 4
