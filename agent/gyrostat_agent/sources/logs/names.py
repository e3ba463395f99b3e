"""Canonical names: what a trainer's own name measures, so that one rule serves all trainers.

A format's own aliases come first. Then a name is read by its tokens, never by a part of a word: ``loss_scale`` is no
loss and ``grad_norm_clip_fraction`` no gradient norm. What is told of evaluation keeps its own name under ``eval/``.
"""

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import NamedTuple

from gyrostat_agent.sources.logs.said import EVAL, TRAIN
from gyrostat_rules.series import measured

CANONICAL = (
    "loss", "grad_norm", "entropy", "kl", "ppo_kl", "mismatch_kl", "mismatch_diff", "reward", "reward_std",
    "learning_rate", "clip_fraction", "response_length", "truncated_fraction", "zero_advantage_fraction",
    "throughput", "step_time", "balance_loss", "z_loss", "expert_violation", "loss_scale", "skipped_steps",
    "nan_steps", "step_applied", "checkpoint_seconds",
)  # fmt: skip
_BY_MEASURE: Mapping[str, str] = {
    "loss": "loss", "pg_loss": "loss", "grad_norm": "grad_norm", "gradient_norm": "grad_norm", "entropy": "entropy",
    "entropy_loss": "entropy", "kl": "kl", "kl_loss": "kl", "kl_divergence": "kl", "ppo_kl": "ppo_kl",
    "approx_kl": "ppo_kl", "mismatch_kl": "mismatch_kl", "reward": "reward", "rewards": "reward", "score": "reward",
    "reward_std": "reward_std", "learning_rate": "learning_rate", "lr": "learning_rate",
    "clip_fraction": "clip_fraction", "clipfrac": "clip_fraction", "pg_clipfrac": "clip_fraction",
    "response_length": "response_length",
    "completion_length": "response_length", "throughput": "throughput", "step_time": "step_time",
    "time_per_step": "step_time", "load_balancing_loss": "balance_loss", "aux_loss": "balance_loss",
    "z_loss": "z_loss", "loss_scale": "loss_scale", "frac_reward_zero_std": "zero_advantage_fraction",
    "checkpoint_seconds": "checkpoint_seconds", "checkpoint_save_seconds": "checkpoint_seconds",
    "checkpoint_save_time": "checkpoint_seconds", "save_checkpoint_time": "checkpoint_seconds",
    "save_checkpoint_seconds": "checkpoint_seconds",
}  # fmt: skip
_EVALUATION = re.compile(r"(?:^|[/_. -])(?:eval|evaluation|val|valid|validation|test)(?:$|[/_. -])|^val-")


class Name(NamedTuple):
    """``canonical`` is '' where nobody knows what it measures; ``phase`` train or eval."""

    canonical: str
    phase: str


class Names:
    """The names of one log, each looked up once. ``known``: the trainer's names so far and what they were read as."""

    def __init__(self, aliases: Mapping[str, str]) -> None:
        self._exact = {name: to for name, to in aliases.items() if not name.endswith("*")}
        self._patterns = [(name, to) for name, to in aliases.items() if name.endswith("*")]
        self.known: dict[str, Name] = {}

    def of(self, name: str) -> Name:
        """What ``name`` means."""
        if name not in self.known:
            self.known[name] = self._look_up(name)
        return self.known[name]

    def _look_up(self, name: str) -> Name:
        if name in self._exact:  # to nothing where a format knows that it is none of them
            return Name(self._exact[name], TRAIN)
        if (found := next((to for pattern, to in self._patterns if fnmatchcase(name, pattern)), None)) is not None:
            return Name(found, TRAIN)
        if _EVALUATION.search(name.lower()):
            return Name("", EVAL)
        return Name(_BY_MEASURE.get(measured(name), ""), TRAIN)
