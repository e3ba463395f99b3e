"""Bootstrap: how low the mean of a few differences may lie, without saying how they are distributed."""

from collections.abc import Sequence

import numpy

RESAMPLES = 10_000
SURE = 0.95


def lower_bound(differences: Sequence[float], sure: float = SURE, resamples: int = RESAMPLES) -> float:
    """One-sided lower bound of the mean, by the percentile method; the same for the same numbers, always.

    So many samples of the same size are drawn with replacement, and the bound is the quantile 1 - ``sure`` of their
    means: of one number it is that number. Raises ValueError where there is none.
    Source: Efron and Tibshirani, An Introduction to the Bootstrap (1993), chapter 13.
    """
    if not differences:
        raise ValueError("there is nothing to be sure of: give at least one difference")
    # RandomState and not a Generator: its stream is frozen for good, and a table that is checked in must come out
    # of the same rows with every numpy.
    drawn = numpy.random.RandomState(0).randint(len(differences), size=(resamples, len(differences)))
    means = numpy.asarray(differences, dtype=float)[drawn].mean(axis=1)
    return float(numpy.quantile(means, 1 - sure))
