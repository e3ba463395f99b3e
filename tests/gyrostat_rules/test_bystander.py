"""Two sources that tell of one process: late rows join their step, and nobody is taken for a run that went back."""

from run_story import NAN, Story

from gyrostat.wire import Record
from gyrostat_rules.entries import EntryKind

CONSOLE, BOARD = "log-console.1", "log-board.1"


def row(step: int, life: str = CONSOLE, segment: int = 0, **values: float) -> Record:
    """A row of a log."""
    return Record("trainer", 0, life, segment, step, step, 1000.0 + step, values or {"loss": 1.0, "grad_norm": 0.5})


def series(story: Story, name: str) -> dict[int, float]:
    """What is known of a series, by step."""
    window = story.engine.state.windows["trainer/0"][name]
    return dict(zip(window.steps, window.values, strict=True))


def jumps(story: Story) -> list[str]:
    """What the history says of a run that went back."""
    return [entry.text for entry in story.told(EntryKind.RUN, "jumped")]


def test_a_log_that_lags_behind_another_undoes_nothing() -> None:
    """Both are whole in the end, and the run never went back."""
    story = Story()
    for step in range(1, 31):
        story.batch(row(step))
        if step > 3:
            story.batch(row(step - 3, BOARD, reward=0.5))
    assert list(series(story, "loss")) == [*range(1, 31)]
    assert list(series(story, "reward")) == [*range(1, 28)]
    assert not jumps(story)
    assert story.engine.state.step == 30


def test_logs_may_lead_in_turn() -> None:
    """Whichever is ahead is the run's newest step."""
    story = Story()
    for step in range(1, 21):
        first, second = (CONSOLE, BOARD) if step % 2 else (BOARD, CONSOLE)
        for life in (first, second):
            story.batch(row(step, life, **({"loss": 1.0} if life == CONSOLE else {"reward": 0.5})))
    assert [list(series(story, name)) for name in ("loss", "reward")] == [[*range(1, 21)]] * 2
    assert not jumps(story)


def test_a_second_log_read_from_its_beginning_is_no_restart() -> None:
    """A backlog of a thousand steps that comes after the first log's undoes none of them."""
    story = Story()
    story.batch(*(row(step) for step in range(1, 101)))
    story.batch(*(row(step, BOARD, reward=0.5) for step in range(1, 101)))
    assert [len(series(story, name)) for name in ("loss", "reward")] == [100, 100]
    assert not jumps(story)


def test_a_nan_that_only_the_late_one_tells_is_heard() -> None:
    """That it comes late makes it no less true, and what it does not tell is not called missing."""
    story = Story()
    for step in range(1, 21):
        story.batch(row(step))
        if step > 2:
            story.batch(row(step - 2, BOARD, **{"kl": NAN if step - 2 == 15 else 0.1}))
    fired = story.told(EntryKind.ALERT, "firing")
    assert [entry.data["evidence"]["values"] for entry in fired][:1] == [{"kl": "nan"}]


def test_two_logs_of_a_run_that_goes_back_tell_of_one_jump() -> None:
    """The second to say so undoes nothing of what the first has told since."""
    story = Story()
    for step in range(1, 21):
        story.batch(row(step), row(step, BOARD, reward=0.5))
    for step in range(11, 26):
        story.batch(row(step, segment=1, loss=2.0))
        if step > 13:
            story.batch(row(step - 3, BOARD, segment=1, reward=0.7))
    assert len(jumps(story)) == 1
    assert series(story, "loss") == {step: 1.0 if step < 11 else 2.0 for step in range(1, 26)}
    assert series(story, "reward") == {step: 0.5 if step < 11 else 0.7 for step in range(1, 23)}


def test_a_log_beside_the_sdk_only_adds() -> None:
    """Ahead of the trainer's own word or behind it, it moves neither step nor life."""
    story = Story().begin()
    for step in range(1, 21):
        story.batch(row(step, temperature=40.0 + step))
        if step > 2:
            story.step(step - 2)
    state = story.engine.state
    assert (state.step, state.processes["trainer/0"].incarnation) == (18, "life-a")
    assert len(series(story, "temperature")) == 20
    assert list(series(story, "loss")) == [*range(1, 19)]
    assert not jumps(story)


def test_a_log_that_is_begun_anew_is_a_run_that_went_back() -> None:
    """The same log in another life is no bystander of itself."""
    story = Story()
    story.batch(*(row(step) for step in range(1, 21)))
    story.batch(*(row(step, "log-console.2") for step in range(11, 16)))
    assert list(series(story, "loss")) == [*range(1, 16)]
