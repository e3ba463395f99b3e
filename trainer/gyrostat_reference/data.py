"""PromptData: a finite data set of prompts, served in seeded epoch orders by a cursor.

The cursor is a place in an endless sequence of epochs, so which item lies at a place is a function of the seed
alone: a sidecar's "items of the bad batches" and ours are the same. Items passed over are stepped across and
never served again. A batch that was drawn but not accepted is drawn again (a step that StepGuard skipped).
"""

from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from gyrostat_reference import task


class Batch(NamedTuple):
    """``items``, ids, and ``prompts`` (n, PROMPT_LENGTH): a rank's part of what lies from ``start`` to ``stop``."""

    items: tuple[int, ...]
    prompts: Tensor
    start: int
    stop: int


class Place(NamedTuple):
    """Where a data set stands: the next batch's place, the first place never drawn, the items passed over."""

    cursor: int = 0
    seen: int = 0
    passed_over: frozenset[int] = frozenset()


class PromptData:
    """``size`` prompts, drawn with ``seed``. ``place`` is all there is to save of it.

    Of ``world`` ranks each draws the same batch and takes its part of it, so that their places never differ.
    """

    def __init__(self, size: int = 512, seed: int = 0, batch: int = 16, rank: int = 0, world: int = 1) -> None:
        self.size, self._seed, self._batch = size, seed, batch
        self._rank, self._world = rank, world
        self._prompts = task.draw_prompts(size, Generator().manual_seed(seed))
        self._orders: dict[int, list[int]] = {}
        self.place = Place()

    def draw(self) -> Batch:
        """The batch at the cursor; the cursor stays until ``accept``."""
        items: list[int] = []
        stop = self.place.cursor
        while len(items) < self._batch:
            if (item := self.item_at(stop)) not in self.place.passed_over:
                items.append(item)
            stop += 1
        self.place = self.place._replace(seen=max(self.place.seen, stop))
        own = items[self._rank :: self._world]
        return Batch(tuple(own), self._prompts[own], self.place.cursor, stop)

    def accept(self, batch: Batch) -> None:
        """Move the cursor behind ``batch``."""
        self.place = self.place._replace(cursor=batch.stop)

    def item_at(self, place: int) -> int:
        """Id of the item at a place of the sequence, whether it is passed over or not."""
        epoch, within = divmod(place, self.size)
        if epoch not in self._orders:
            random = Generator().manual_seed(self._seed * 1_000_003 + epoch + 1)
            self._orders[epoch] = torch.randperm(self.size, generator=random).tolist()
        return self._orders[epoch][within]

    def first_item_of_step(self, step: int) -> int:
        """The item that comes first in a step's batch where no step is skipped and nothing is passed over."""
        return self.item_at((step - 1) * self._batch)

    def checked(self, items: Iterable[object]) -> frozenset[int]:
        """``items`` as ids that may be passed over; raises ValueError where that leaves less than one batch."""
        asked = list(items)
        ids = frozenset(i for i in asked if isinstance(i, int) and not isinstance(i, bool) and 0 <= i < self.size)
        if len(ids) != len(set(map(repr, asked))):
            raise ValueError(f"items are whole numbers from 0 to {self.size - 1}, not {asked!r}")
        if self.size - len(ids | self.place.passed_over) < self._batch:
            raise ValueError(f"passing over {len(ids)} more items would leave less than a batch of {self._batch}")
        return ids

    def go_past(self, items: frozenset[int], seen: int = 0) -> None:
        """Never serve ``items`` again, nor anything drawn so far (nor before the place ``seen``) in this epoch.

        Raises ValueError where that would leave less than a batch.
        """
        self.checked(items | self.place.passed_over)
        seen = max(seen, self.place.seen, self.place.cursor)
        self.place = Place(seen, seen, self.place.passed_over | items)
