"""The words of a rule: for how long, for whom, in which phase; and that a reader of Prometheus rules knows them."""

import pytest
from run_story import Story

from gyrostat_rules.entries import EntryKind
from gyrostat_rules.lasting import Lasting, lasting

RULE = """\
pack: words
groups:
  - name: g
    rules:
      - alert: High
        detector: level
        with: {series: [temperature], above: 10, needed: 1, of: 1}
        severity: warning
        MORE
"""


def story(more: str = "", world: int = 1) -> Story:
    """A run whose one rule fires above 10, with more words to it."""
    return Story(pack=RULE.replace("MORE", more), world=world).begin()


def told(given: Story, values: list[float], first: int = 1) -> list[int]:
    """The steps, from ``first`` on, at which the alert fires."""
    fires = []
    for step, value in enumerate(values, first):
        given.step(step, temperature=value)
        if any(alert.state == "firing" for alert in given.alerts.values()):
            fires.append(step)
    return fires


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("10 steps", Lasting(10)), ("1 step", Lasting(1)), ("3 of 5 steps", Lasting(3, 5)),
        ("30s", Lasting(seconds=30)), ("1h30m", Lasting(seconds=5400)), ("250ms", Lasting(seconds=0.25)),
        ("2d", Lasting(seconds=172800)), ("", None), ("10", None), ("5 of 3 steps", None), ("0 of 3 steps", None),
        ("-1 steps", None), ("3 of 201 steps", None), ("30 s", None), ("m", None), ("9" * 30 + " steps", None),
    ],
)  # fmt: skip
def test_lengths_of_time_are_read_as_people_write_them(text: str, found: Lasting | None) -> None:
    """Steps, some of the last steps, or a duration as Prometheus has it; anything else is a mistake, and no guess."""
    assert lasting(text) == found


@pytest.mark.parametrize("length", ["10 steps", "3 of 5 steps", "90s", ""])
def test_a_length_says_itself_in_the_same_words(length: str) -> None:
    """What is shown of a rule is what its pack says."""
    assert (lasting(length) or Lasting()).words() == length


def test_some_of_the_last_steps_are_enough() -> None:
    """Three of five need no unbroken row, fire on the third, and end when too few are left among the last five."""
    assert told(story("for: 3 of 5 steps"), [11, 0, 11, 0, 11, 0, 0, 0, 0]) == [5]
    assert told(story("for: 3 of 5 steps"), [11, 11, 11, 11, 0, 0, 0, 0, 0]) == [3, 4, 5, 6]


def test_one_of_five_in_a_row_of_steps_never_fires() -> None:
    """What is bad every third step is never bad in three of the last five."""
    assert told(story("for: 3 of 5 steps"), [11, 0, 0] * 10) == []


def test_what_was_pending_among_the_last_steps_is_forgotten_at_last() -> None:
    """An alert that never fired leaves nothing behind, and nobody is told that it resolved."""
    given = story("for: 3 of 5 steps")
    told(given, [11, 11, 0, 0, 0, 0, 0])
    assert not given.alerts
    assert not [e for e in given.told(EntryKind.ALERT) if e.state != "pending"]


def test_seconds_count_time_and_not_steps() -> None:
    """Two slow steps may be a minute; ten fast ones are not."""
    given = story("for: 30s")
    assert told(given, [11.0] * 10) == []
    given.tick(25.0)
    assert told(given, [11.0], 11) == [11]


def test_it_keeps_firing_for_so_many_seconds() -> None:
    """A pause that is shorter than that is no end."""
    given = story("keep_firing_for: 10s")
    assert told(given, [11] + [0] * 14) == [*range(1, 12)]


@pytest.mark.parametrize(
    ("match", "ranks"),
    [("", ["0", "1"]), ("match: {rank: '1'}", ["1"]), ("match: {rank: ['0', '1']}", ["0", "1"]),
     ("match: {role: rollout}", []), ("match: {series: temperature, rank: '0'}", ["0"])],
    ids=["all", "one rank", "a list", "another role", "two labels"],
)  # fmt: skip
def test_a_rule_speaks_of_what_it_matches_alone(match: str, ranks: list[str]) -> None:
    """Every label must be as it says, or as one of those it says."""
    given = story(match, world=2)
    given.batch(*(given.record(1, rank, temperature=11.0) for rank in (0, 1)))
    assert sorted(alert.labels["rank"] for alert in given.alerts.values()) == ranks


def test_the_warm_up_is_the_first_twenty_steps_of_a_life() -> None:
    """A rule may look away from it, or look at nothing else; a restart warms up again."""
    assert told(story("when: [not warmup]"), [11.0] * 23) == [21, 22, 23]
    assert told(story("when: [warmup]"), [11.0] * 23) == [*range(1, 21)]
    given = story("when: [not warmup]")
    told(given, [11.0] * 22)
    given.begin(life="life-b")
    assert told(given, [11.0] * 20, 23) == []


def test_a_rule_may_look_away_from_the_ten_steps_after_a_rollback() -> None:
    """Numbers jump when the weights do."""
    given = story("when: [not after_rollback]")
    told(given, [1.0] * 30)
    given.segment = 1
    assert told(given, [11.0] * 12, 21) == [31, 32]


def test_a_rule_may_look_away_from_a_change_of_the_learning_rate() -> None:
    """A leap of the rate explains a leap of the loss; a schedule's small steps are no change."""
    given, fires = story("when: [not lr_change]"), []
    for step in range(1, 40):
        given.step(step, temperature=11.0, lr=1e-3 * 0.97**step * (0.1 if step >= 20 else 1.0))
        fires += [step] if given.alerts else []
    assert fires == [*range(1, 20), *range(25, 40)]


def test_annotations_and_the_fault_reach_who_is_told() -> None:
    """Labels are filled in; what kind of fault it is goes with it."""
    more = 'annotations: {summary: "hot at {step}", description: "{series} of {rank}"}\n        fault: gpu_thermal'
    given = story(more)
    given.step(1, temperature=11.0)
    [entry] = given.told(EntryKind.ALERT, "firing")
    said = {name: entry.data[name] for name in ("summary", "description", "fault")}
    assert said == {"summary": "hot at 1", "description": "temperature of 0", "fault": "gpu_thermal"}
