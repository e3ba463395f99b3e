"""Expert balance of one layer and loop, reduced from raw counts.

    CV = std_e(f) * E      rho_eff = 1 / (1 + CV^2)      dead share = share of experts with f_e < 0.1 / E

CV is corrected for the finite sample: even perfect routing of N assignments gives E[CV^2] = (E - 1) / N.
"""

from bisect import bisect_left
from collections.abc import Sequence
from operator import mul
from typing import NamedTuple

from gyrostat.wire import ExpertLoad


class Balance(NamedTuple):
    """Effective share of experts in use (0 to 1), share of dead ones, largest share of one expert."""

    rho_eff: float
    dead_share: float
    top_share: float


def balance(counts: Sequence[int]) -> Balance:
    """Balance of one row of counts; perfect where nothing was routed, for nothing is known then."""
    experts, total = len(counts), sum(counts)
    if not experts or not total:
        return Balance(1.0, 0.0, 0.0)
    # Whole numbers, and no loop of our own: exact, and a third of the time where there are 61 layers of 256.
    ordered = sorted(counts)
    cv2 = (experts * sum(map(mul, counts, counts)) - total * total) / (total * total)
    adjusted = max(0.0, cv2 - (experts - 1) / total)
    dead = bisect_left(ordered, 0.1 * total / experts) / experts
    return Balance(1.0 / (1.0 + adjusted), dead, ordered[-1] / total)


def worst(load: ExpertLoad) -> Balance:
    """The least balanced layer and loop."""
    return min((balance(counts) for _, _, counts in load.rows()), default=Balance(1.0, 0.0, 0.0))
