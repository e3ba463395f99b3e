"""Whatever a run has been through, the target of a rollback is sound, and never older than it must be."""

from typing import NamedTuple

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from run_story import Story, path_of

from gyrostat_rules.certify import CLEAN_STEPS, choose
from gyrostat_rules.inputs import Fit
from gyrostat_rules.state import Incident


class Leg(NamedTuple):
    """Healthy steps, a checkpoint every ``interval``; then a person goes ``back`` so many checkpoints, 0: stays."""

    steps: int
    back: int
    interval: int


class Saved(NamedTuple):
    """A checkpoint of the history that the run is in."""

    step: int
    segment: int
    well: bool  # verified, and no incident was open when it was saved


legs = st.lists(st.builds(Leg, st.integers(1, 45), st.integers(0, 3), st.integers(1, 40)), min_size=1, max_size=5)


class History:
    """A run that is told step by step, and the list of what it has saved, kept apart from the engine's own."""

    def __init__(self, guard: bool, ill: frozenset[int]) -> None:
        self.story, self.saved = Story(act=False).begin(), list[Saved]()
        self.guard, self.ill = guard, ill
        self.step = self.count = 0

    def walk(self, leg: Leg) -> None:
        for _ in range(leg.steps):
            self._tell(leg.interval)
        if leg.back and len(self.saved) >= leg.back:
            self._go_back(self.saved[-leg.back].step)

    def _tell(self, interval: int) -> None:
        self.step += 1
        self.story.at += 1.0
        record = self.story.record(self.step)
        hidden = () if self.guard else ("step_applied",)
        self.story.batch(record._replace(values={n: v for n, v in record.values.items() if n not in hidden}))
        if self.step % interval == 0:
            self.count += 1
            ill = self.count in self.ill
            segment, quiet = self.story.segment, not any(i.open for i in self.story.incidents)
            self.story.checkpoint(
                self.step, fit=Fit.UNFIT if ill else Fit.VERIFIED, why="cut short" * ill, segment=segment
            )
            self.saved.append(Saved(self.step, segment, not ill and quiet))

    def _go_back(self, step: int) -> None:
        sent = len(self.story.sent())
        self.story.command("rollback", to=str(step), by="Ada")
        if len(self.story.sent()) > sent:  # else it was refused: it is not certified, or one is under way
            self.story.ack(step=self.step)
            self.step = step
            self.saved = [each for each in self.saved if each.step <= step]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(legs, st.booleans(), st.frozensets(st.integers(1, 40), max_size=12))
def test_the_target_is_sound_and_never_older_than_it_must_be(path: list[Leg], guard: bool, ill: frozenset[int]) -> None:
    """The newest that is well and of this history; without a guard less the clean steps behind it, and one interval.

    What lies between two that are well counts as an interval: of those in it there is nothing to go back to.
    """
    history = History(guard, ill)
    for leg in path:
        history.walk(leg)
    onset = history.step + 1
    chosen, said = choose(history.story.engine.state, Incident("i9", "nonfinite", "open", onset, onset, 0.0, [], onset))
    well = [each for each in history.saved if each.well]
    if chosen is not None:
        found = next(each for each in history.saved if path_of(each.step, each.segment) == chosen.path)
        assert chosen.fit == Fit.VERIFIED and found.step < onset
        assert guard or onset - 1 - found.step >= CLEAN_STEPS
    must = [each.step for each in well if guard or onset - 1 - each.step >= CLEAN_STEPS]
    assert (chosen is not None) >= bool(must), said
    if must and chosen is not None:
        ideal = well[-1].step
        widest = max(b - a for a, b in zip([0, *(e.step for e in well)], (e.step for e in well), strict=False))
        assert chosen.step >= ideal - (0 if guard else CLEAN_STEPS + widest)
        assert chosen.step >= must[-1]
