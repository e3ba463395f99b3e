"""Queries: PromQL over the agent's metrics, of the run that the board is looking at."""

from typing import NamedTuple

HERE = 'instance=~"$instance"'  # the agents of the chosen run: most metrics do not bear the run's name themselves


class Query(NamedTuple):
    """One expression, and how its series are called in the legend."""

    expr: str
    legend: str = ""


def of(metric: str, **labels: str) -> str:
    """``metric`` of the chosen run; a label's value that begins with ``~`` is a regular expression."""
    said = [f'{name}=~"{v[1:]}"' if v.startswith("~") else f'{name}="{v}"' for name, v in labels.items()]
    return f"{metric}{{{','.join((HERE, *said))}}}"


def values(*series: str, role: str = "trainer") -> Query:
    """The newest values of these series, each line by its rank and name. Names are regular expressions."""
    found = series[0] if len(series) == 1 else f"({'|'.join(series)})"
    return Query(of("gyrostat_value", role=f"~{role}", series=f"~{found}"), "{{role}} {{rank}} {{series}}")


def told(*words: str) -> str:
    """Names as trainers spell them: ``actor/entropy``, ``train_entropy`` and ``entropy/mean`` for ``entropy``."""
    return f"(.*/|train_)?({'|'.join(words)})(/mean)?"


def rate(metric: str, **labels: str) -> str:
    """Of a counter, by the second."""
    return f"rate({of(metric, **labels)}[$__rate_interval])"


def risen(metric: str, **labels: str) -> str:
    """Of a counter, how much it has grown in the time that is looked at."""
    return f"increase({of(metric, **labels)}[$__range])"
