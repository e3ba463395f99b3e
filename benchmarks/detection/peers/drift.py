"""river: its drift detectors ADWIN and Page-Hinkley, and its Gaussian scorer, one for every series.

They take finite numbers alone; so that a NaN is not held against them, all but the settings they come with tell it.
"""

from collections.abc import Callable, Collection, Mapping
from functools import partial
from itertools import product
from typing import Any

from peers.watcher import Alarm, Breached, Peer, Setting

_DELTAS = (1e-3, 1e-5, 1e-8, 1e-12)
_LAMBDAS, _TOLERANCES = (5.0, 50.0, 500.0), (0.005, 0.05)
_SURE = (0.999, 0.999999, 1 - 1e-12)


class Drifting:
    """A detector of ``made`` for every series, asked ``drifted`` after each value."""

    def __init__(self, made: Callable[[], Any], told: Callable[[Any, float], bool], odd: bool) -> None:
        self.made, self.told, self.odd = made, told, odd
        self.out, self.known = Breached(), dict[str, Any]()

    def row(self, step: int, values: Mapping[str, float], asked: bool) -> Collection[Alarm]:
        """What has drifted."""
        for series, value in values.items():
            if not self.out.odd(series, value, self.odd):
                detector = self.known.get(series) or self.known.setdefault(series, self.made())
                self.out.mark(f"{series} drifts", self.told(detector, value))
        return self.out.now.values()


def _drifted(detector: Any, value: float) -> bool:
    detector.update(value)
    return bool(detector.drift_detected)


def _anomalous(sure: float, scorer: Any, value: float) -> bool:
    """``scorer`` gives how far out of its Gaussian a value lies, 0 to 1."""
    try:
        score = scorer.score_one(None, value)
    except TypeError:  # the root of a variance that rounding made negative: it would break off at a constant series
        score = 0.0
    scorer.learn_one(None, value)
    return bool(score > sure)


def _adwin(**given: float) -> Any:
    from river.drift import ADWIN

    return ADWIN(**given)


def _page_hinkley(**given: float) -> Any:
    from river.drift import PageHinkley

    return PageHinkley(**given)


def _gaussian(window: int) -> Any:
    from river.anomaly import GaussianScorer

    return GaussianScorer(window_size=window, grace_period=10)


def _setting(words: str, made: Callable[[], Any], told: Callable[[Any, float], bool] = _drifted) -> Setting:
    return Setting(f"{words}, NaN", partial(Drifting, made, told, True))


ADWIN = Peer(
    "river ADWIN",
    (
        Setting("as it comes", partial(Drifting, _adwin, _drifted, False)),
        *(_setting(f"delta {delta:g}", partial(_adwin, delta=delta)) for delta in _DELTAS),
    ),
    "every series",
    ("river.drift",),
    stands=True,
)
PAGE_HINKLEY = Peer(
    "river Page-Hinkley",
    (
        Setting("as it comes", partial(Drifting, _page_hinkley, _drifted, False)),
        *(
            _setting(f"threshold {limit:g}, delta {slack:g}", partial(_page_hinkley, threshold=limit, delta=slack))
            for limit, slack in product(_LAMBDAS, _TOLERANCES)
        ),
    ),
    "every series",
    ("river.drift",),
    stands=True,
)
GAUSSIAN = Peer(
    "river GaussianScorer",
    tuple(_setting(f"over {sure:.12g} of 200", partial(_gaussian, 200), partial(_anomalous, sure)) for sure in _SURE),
    "every series",
    ("river.anomaly",),
    stands=True,
)
