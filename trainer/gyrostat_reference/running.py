"""Running: what goes on from step to step beside the tensors, of each rank, and how it lies in a checkpoint."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
import xxhash
from torch import Generator

from gyrostat_reference.estimates import Estimates
from gyrostat_reference.manifest import whole


class Running(NamedTuple):
    """One rank's: the state of its random generator, what its algorithms remember, the guard's latest skips."""

    random: bytes
    estimates: Estimates
    skips: tuple[int, ...] = ()

    def encode(self) -> dict[str, Any]:
        """As JSON."""
        return {"random": self.random.hex(), "estimates": self.estimates.encode(), "skips": self.skips}

    @classmethod
    def decode(cls, raw: Mapping[str, Any]) -> "Running":
        """Read ``encode``'s JSON; raises ValueError, KeyError, TypeError, or RuntimeError on no generator's state."""
        random = bytes.fromhex(raw["random"])
        Generator().set_state(torch.frombuffer(bytearray(random), dtype=torch.uint8))
        return cls(random, Estimates.decode(raw["estimates"]), tuple(whole(step) for step in raw.get("skips", ())))

    @classmethod
    def of(cls, random: Generator, estimates: Estimates, skips: Sequence[int] = ()) -> "Running":
        """As things stand."""
        return cls(bytes(random.get_state().tolist()), estimates, tuple(skips))

    def put_into(self, random: Generator) -> None:
        """Make the generator what it was."""
        random.set_state(torch.frombuffer(bytearray(self.random), dtype=torch.uint8))


def of_rank(all_ranks: Sequence[Running], rank: int, world: int) -> Running:
    """What ``rank`` of ``world`` goes on with; with another world than before it draws anew, each rank its own."""
    if len(all_ranks) == world:
        return all_ranks[rank]
    first = all_ranks[0]
    seed = xxhash.xxh3_64_intdigest(first.random + f"{world}/{rank}".encode()) >> 1
    return first._replace(random=bytes(Generator().manual_seed(seed).get_state().tolist()))
