"""Expert balance of one layer and loop, reduced from raw counts (ALGORITHMS §2.1).

    CV = std_e(f) * E      rho_eff = 1 / (1 + CV^2)      dead share = share of experts with f_e < 0.1 / E

CV is corrected for the finite sample: even perfect routing of N assignments gives E[CV^2] = (E - 1) / N.
"""

from collections.abc import Sequence
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
    mean = total / experts
    cv2 = sum((c - mean) ** 2 for c in counts) / experts / mean**2
    adjusted = max(0.0, cv2 - (experts - 1) / total)
    dead = sum(c < 0.1 * mean for c in counts) / experts
    return Balance(1.0 / (1.0 + adjusted), dead, max(counts) / total)


def worst(load: ExpertLoad) -> Balance:
    """The least balanced layer and loop."""
    return min((balance(counts) for _, _, counts in load.rows()), default=Balance(1.0, 0.0, 0.0))
