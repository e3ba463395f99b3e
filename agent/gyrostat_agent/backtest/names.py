"""Signals: what a case's signal is called in Records, so that rules see it as they would in the trainer's own log.

Signals of corpora are trainers' own names, mostly without the section before them (``truncated_ratio`` for
``rollout/truncated_ratio``). What has no canonical name keeps its own.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from gyrostat_agent.backtest.case import Case
from gyrostat_agent.sources.logs.names import CANONICAL, Names
from gyrostat_agent.sources.logs.table import FORMATS

_FORMATS: Mapping[str, str] = {"hf_trainer": "hf", "trl": "hf", "ms_swift": "swift"}  # trainers called otherwise
HF_FAMILY = ("hf", "swift", "llamafactory")  # loggers that put 0 in place of a loss that is not finite


def names(cases: Sequence[Case]) -> dict[str, str]:
    """Signal -> name, for the lines of one run.

    A canonical name is given once: to the signal that is called so, else to the first; a critic's gradient must not
    hide the policy's. The others keep their own.
    """
    found: dict[str, str] = {}
    for case in sorted(cases, key=lambda case: case.signal not in CANONICAL):
        if case.signal not in found:
            name = canonical(case.signal, case.trainer)
            found[case.signal] = case.signal if name in found.values() else name
    return found


@lru_cache(maxsize=4096)
def canonical(signal: str, trainer: str) -> str:
    """The canonical name: by the trainer's own format, by what it measures, or by what all formats agree on."""
    if signal in CANONICAL:
        return signal
    own, plain = _spelled(form_of(trainer)), _plain(signal)
    if plain in own:  # to nothing where the format knows that it is none of them
        return own[plain] or signal
    return Names({}).of(signal).canonical or _agreed().get(plain) or signal


def form_of(trainer: str) -> str:
    """The format of that trainer's logs; '' for one that has none."""
    plain = _plain(trainer)
    spelled = {_plain(name): name for name in FORMATS}
    return spelled.get(_FORMATS.get(plain, plain), "")


@lru_cache(maxsize=64)
def _spelled(form: str) -> dict[str, str]:
    """What a format's names mean, ``critic/grad_norm`` as ``critic_grad_norm`` or, where that is one thing, without
    its section. One word alone says too little: ``time/step`` is a step's time, and a signal called ``step`` is none.
    """
    whole: dict[str, str] = {}
    found: dict[str, set[str]] = {}
    for name, to in FORMATS[form].aliases.items() if form in FORMATS else ():
        whole[_plain(name.rstrip("*").replace("/", "_"))] = to
        found.setdefault(_plain(name.rstrip("*").rpartition("/")[2]), set()).add(to)
    return {name: to.pop() for name, to in found.items() if "_" in name and len(to) == 1} | whole


@lru_cache(maxsize=1)
def _agreed() -> dict[str, str]:
    found: dict[str, set[str]] = {}
    for form in FORMATS:
        for name, to in _spelled(form).items():
            found.setdefault(name, set()).add(to)
    return {name: to.pop() for name, to in found.items() if len(to) == 1}


def _plain(name: str) -> str:
    return re.sub(r"[\s-]+", "_", name.strip().lower())
