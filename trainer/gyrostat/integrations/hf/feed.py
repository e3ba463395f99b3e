"""Feed: where the data goes into a Hugging Face trainer, so that it goes on past what has been seen.

A rollback takes the weights back and leaves the data loader where it is. What is left to do is to throw away what
was drawn already and is still waiting: the rest of a generation, whose prompts TRL serves several times over. And
what was passed over by an order is not served in a later epoch, where its rows can be told apart.
"""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from gyrostat.integrations.hf.replacements import Replacements

_REMEMBERED = 16  # updates whose rows are still known when somebody asks to pass them over
_MOST_TRIES = 1000  # draws in a row that are thrown away before one is taken as it is


class _Drawn(NamedTuple):
    low: int
    high: int
    batches: list[Any]


class Feed:
    """Stands before ``get_batch_samples``. A place is a micro-batch of this rank, counted from the run's beginning."""

    def __init__(self, trainer: Any) -> None:
        self._trainer = trainer
        self.drawn = 0
        self.owed = 0  # micro-batches to throw away before the next is served
        self.dropped = False  # some were thrown away: the epochs will not reach as far as was counted
        self._passed: set[str] = set()
        self._recent: deque[_Drawn] = deque(maxlen=_REMEMBERED)
        self._draw: Callable[[int], list[Any]] | None = None

    def watch(self, replacements: Replacements) -> bool:
        """Watch the trainer until ``replacements`` are undone; False where this version has no such method."""
        original = getattr(self._trainer, "get_batch_samples", None)
        if not callable(original):
            return False

        def draw(iterator: Any, count: int, *args: Any, **more: Any) -> Any:
            def once(number: int) -> list[Any]:
                batches = list(original(iterator, number, *args, **more)[0])
                self.drawn += len(batches)
                return batches

            self._draw = once
            self._pay(once)
            return self._served(lambda: original(iterator, count, *args, **more), count, once)

        replacements.put(self._trainer, "get_batch_samples", draw)
        return True

    @property
    def present(self) -> tuple[int, int]:
        """First place and number of places of the newest update; (0, 0) before the first."""
        return (self._recent[-1].low, self._recent[-1].high - self._recent[-1].low) if self._recent else (0, 0)

    def pass_over(self, low: int, high: int) -> int:
        """Never serve what was drawn at the places low to before high; how many kinds of row that are.

        0 where rows cannot be told apart (a batch of tensors): those are past, and may come in a later epoch. Raises
        ValueError for places too long ago to be known.
        """
        found = [each for each in self._recent if each.low < high and low < each.high]
        if not found:
            raise ValueError(f"the data at places {low} to {high} is not known any more")
        rows = {key for each in found for batch in each.batches for key in _keys(batch)}
        self._passed |= rows
        self.leave_rollouts()
        return len(rows)

    def leave_rollouts(self) -> None:
        """Learn nothing more from what was generated: the update that begins now gets the next prompts."""
        trainer = self._trainer
        if not hasattr(trainer, "_buffered_inputs"):
            return
        place = getattr(trainer, "_step", 0) % self._cycle()
        if place and trainer._buffered_inputs is not None and self._draw is not None and self._recent:
            batches, rest = self._recent[-1].batches, self._cycle() - place
            self._draw(max(0, rest - len(batches)))
            low = self.drawn
            fresh = self._draw(len(batches))
            if len(fresh) == len(batches) and all(isinstance(b, list) for b in (*fresh, *batches)):
                for old, new in zip(batches, fresh, strict=True):  # changed where they are: the loop has them
                    old[:] = new
                trainer._step += rest
                self._recent[-1] = _Drawn(low, self.drawn, batches)
            self.dropped = True
        trainer._buffered_inputs = None

    def _pay(self, once: Callable[[int], list[Any]]) -> None:
        """Throw away what is owed, as far as this epoch has it."""
        if self.owed <= 0:
            return
        cycle = self._cycle()
        self.owed = -(-self.owed // cycle) * cycle
        while self.owed > 0:
            found = len(once(min(self.owed, 64)))
            if not found:
                return
            self.dropped, self.owed = True, self.owed - found

    def _served(self, original: Callable[[], Any], count: int, once: Callable[[int], list[Any]]) -> Any:
        for _ in range(_MOST_TRIES):
            result = original()
            batches = result[0]
            if not batches or not self._is_unwanted(batches):
                break
            self.drawn += len(batches)
            self.dropped = True
            if rest := -count % self._cycle():
                once(rest)
        self._recent.append(_Drawn(self.drawn, self.drawn + len(batches), batches))
        self.drawn += len(batches)
        return result

    def _is_unwanted(self, batches: Iterable[Any]) -> bool:
        """True where a row was passed over; within a generation the prompts are no longer asked for."""
        if not self._passed or getattr(self._trainer, "_step", 0) % self._cycle():
            return False
        return any(key in self._passed for batch in batches for key in _keys(batch))

    def _cycle(self) -> int:
        """Micro-batches that share a generation; 1 where nothing is generated."""
        args = self._trainer.args
        if not hasattr(self._trainer, "_buffered_inputs"):
            return 1
        return max(1, int(getattr(args, "steps_per_generation", 0) or 1) * int(getattr(args, "num_iterations", 0) or 1))


def _keys(batch: Any) -> set[str]:
    """What rows are known by: their prompts. A batch of tensors has none that could be read without waiting."""
    if not isinstance(batch, list):
        return set()
    return {repr(row.get("prompt", row)) for row in batch if isinstance(row, dict)}
