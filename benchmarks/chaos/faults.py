"""Faults: what a chaos run may be broken by: those of the scenarios, one or two, and the trainer's words for each.

Two of one *family* are not drawn together: the second would be the first again, or could not be told from it.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gyrostat_agent.demo.scenarios import NOTHING, POISON, SCENARIOS

FAMILIES: Mapping[str, str] = {
    "nan_data": "poison",
    "nan_applied": "poison",
    "nan_crash": "poison",
    "nan_advantage": "hand",
    "divergence": "hand",
    "nan_loud": "hand",
    "entropy_collapse": "entropy",
    "inert_knob": "entropy",
    "expert_imbalance": "experts",
    "mismatch": "rollouts",
}
# What a hand turns, and the most that each may stand at in the end: a playbook may leave a rate lower.
TURNED: Mapping[str, Sequence[str]] = {
    "nan_advantage": ("adv_eps",),
    "divergence": ("lr_scale", "max_grad_norm"),
    "nan_loud": ("lr_scale", "max_grad_norm", "kl_coef", "kl_clamp", "ratio_cap"),
}
LEAST = {"adv_eps": 1e-6}
MOST = {"adv_eps": 1e-2, "lr_scale": 1.0, "max_grad_norm": 2.0, "kl_coef": 0.05, "kl_clamp": 20.0, "ratio_cap": 50.0}


class Strike(NamedTuple):
    """A fault, by its scenario's name, and the step before which it strikes: 1 where it is there from the start."""

    name: str
    step: int

    @property
    def from_start(self) -> bool:
        """True where it is there from the first step."""
        return SCENARIOS[self.name].from_start


def least_steps(strikes: Sequence[Strike], behind: int) -> int:
    """How long a run must be for all to be seen to their end: ``behind`` steps after the last that strikes live."""
    slow = [SCENARIOS[s.name].least_steps for s in strikes if s.from_start]
    live = [s.step + behind for s in strikes if not s.from_start]
    return max([*slow, *live], default=behind)


def words(strikes: Sequence[Strike], *, beside: bool) -> list[str]:
    """The trainer's options for these faults; ``beside``: a sidecar is there, for whom it waits after a bad step."""
    first = [SCENARIOS[s.name] for s in strikes]
    guard = beside and all(one.guard for one in first)
    patience = min((one.patience for one in first), default=0.0) if beside else 0.0
    said = ["--guard" if guard else "--no-guard", "--patience", str(patience)]
    for strike, scenario in zip(strikes, first, strict=True):
        said += scenario.options
        if scenario.fault == POISON:
            said += ["--poison-at-step", str(strike.step)]
        elif scenario.fault != NOTHING:
            said += ["--fault", f"{scenario.fault}@{strike.step}"]
    return said
