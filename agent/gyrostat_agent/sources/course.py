"""Course: where a run stands as the rows of its event files come: in which segment, and as of which step each is told.

Asked by ``eventrun``. Files are flushed when their writers please, and some tags count epochs, samples or seconds in
place of steps: a row behind the newest step is mostly no jump back. It is one where a tag goes back that was told
further on, and the row was written later than all that was told. Any other such row is told as of the newest step.
Where tags go on while the newest step stands still, it was none of theirs: they lead, and those that led go aside.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isfinite

from gyrostat_agent.sources.logs.said import TRAIN, Told

_MOST = 4096  # tags whose newest steps are remembered
_SEGMENT, _STEP, _TIME = "segment", "step", "time"


class Course:
    """Goes on from the ``stand`` that another one left, which had read from ``files``; else from nothing.

    ``measured``: whether a tag is of a known measure; only such a tag takes the lead from another. ``segment`` counts
    from 0, ``step`` is the newest. ``late``: some rows were told as of a later step than their own.
    """

    def __init__(self, measured: Callable[[str], bool], stand: Mapping[str, int], files: Iterable[str] = ()) -> None:
        self.segment, self.step = stand.get(_SEGMENT, 0), stand.get(_STEP, 0)
        self.late = False
        self._measured = measured
        self._time = stand.get(_TIME, 0) / 1e6  # when the newest row was written, Unix seconds
        self._since = 0.0  # when the first of this segment was
        self._begun = bool(stand)
        self._forgot = self._begun  # how far each tag had come is not among what was left
        self._files = frozenset(files)
        self._tags: dict[str, int] = {}
        self._leading: frozenset[str] = frozenset()  # tags that brought the newest step
        self._went_on: set[str] = set()  # tags that were told again since, behind it
        self._aside: set[str] = set()  # tags that count something else

    def stand(self) -> dict[str, int]:
        """What another course goes on from; nothing before the first row."""
        return {_SEGMENT: self.segment, _STEP: self.step, _TIME: int(self._time * 1e6)} if self._begun else {}

    def take(self, told: Told, file: str) -> Told:
        """The next row, as it is to be told: as of which step, and what of its values is still news."""
        step, tags = told.step or 0, _tags_of(told)
        if self._begun and self._aside.issuperset(tags):
            return told._replace(step=self.step)
        behind = self._begun and step < self.step
        if behind and self._is_newest(told) and (self._goes_back(tags, step, file) or self._takes_the_lead(tags)):
            self._turn_back(told.at)
        elif behind or self._is_undone(told):
            return self._belated(told, tags, step)
        if step != self.step or not self._begun:
            self._leading = frozenset(tags)
            self._went_on.clear()
        self._begun, self.step, self._time = True, step, max(self._time, told.at or 0.0)
        self._remember(tags, step)
        return told

    def _goes_back(self, tags: Sequence[str], step: int, file: str) -> bool:
        # A life that began while nobody looked: of a file that is new, no tag is known.
        unseen = self._forgot and file not in self._files
        return unseen or any(self._tags.get(tag, step) > step for tag in tags)

    def _takes_the_lead(self, tags: Sequence[str]) -> bool:
        """True where tags were told twice, behind a newest step that nobody has gone on from."""
        if any(map(self._measured, self._leading)) and not any(map(self._measured, tags)):
            return False
        if self._went_on.isdisjoint(tags):
            self._went_on.update(tags)
            return False
        self._aside = (self._aside | self._leading).difference(tags)
        return True

    def _turn_back(self, at: float | None) -> None:
        self.segment += 1
        self._since = at or self._time
        self._forgot = False
        self._tags.clear()

    def _is_newest(self, told: Told) -> bool:
        return told.at is None or told.at > self._time

    def _is_undone(self, told: Told) -> bool:
        """True for what was written before the run went back, and came only now."""
        return told.at is not None and told.at < self._since

    def _belated(self, told: Told, tags: Sequence[str], step: int) -> Told:
        """As of the newest step: what is not finite in any case, else only what its tag has not passed."""
        self.late = True
        undone = self._is_undone(told)
        passed = {tag for tag in tags if undone or self._tags.get(tag, step) > step}
        self._remember([tag for tag in tags if tag not in passed], step)
        pairs = zip(tags, told.values.items(), strict=True)
        news = {name: value for tag, (name, value) in pairs if tag not in passed or not isfinite(value)}
        return told._replace(step=self.step, values=news)

    def _remember(self, tags: Sequence[str], step: int) -> None:
        known = len(self._tags) < _MOST
        self._tags.update(dict.fromkeys(tags if known else [tag for tag in tags if tag in self._tags], step))


def _tags_of(told: Told) -> tuple[str, ...]:
    """What is drawn of an evaluation may bear the name of what is drawn of training."""
    return tuple(told.values) if told.phase == TRAIN else tuple(f"{told.phase}/{tag}" for tag in told.values)
