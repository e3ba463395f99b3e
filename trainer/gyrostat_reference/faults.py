"""Faults that tests, scenarios and the demonstration ask for: by configuration or data only, never an edited metric.

Each is what a person or a machine does wrong: a careless edit of a knob in mid-run, past all bounds; a base trained
without balance; an item whose verifier divides by zero; a rollout engine left behind; a rank that stalls or dies; a
checkpoint damaged on disk. ``--fault NAME`` or ``NAME@STEP`` asks for one; it strikes before that step, once in a
run: what has struck is noted beside the checkpoints, and a restart does not do it again.

``GYROSTAT_REFERENCE_DIE_AT="point:count"`` kills the process with SIGKILL the count-th time it comes to a
point: nothing is flushed, nothing said, as when a node is lost.
"""

import os
import signal
from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from gyrostat_reference import task

DIE_AT = "GYROSTAT_REFERENCE_DIE_AT"
POINTS = (
    "apply.before", "apply.after", "procedure.done", "checkpoint.files", "checkpoint.renamed", "step.recorded",
)  # fmt: skip
_LIVE = 20  # the step before which a fault strikes that isn't there from the start
_OFF = 3e38  # of a clip or clamp: past every number of float32, and still one that a manifest can hold
_GRPO = {"use_gepo": 0.0, "eta": 1.0, "token_entropy_flow_control": 0.0, "alpha_max": 0.0}


class Fault(NamedTuple):
    """What goes wrong: ``knobs`` set at ``step`` without a directive, and what no knob can do, by name in ``act``.

    ``base`` names a reference policy beside the usual one; ``start``: knobs of the run from its beginning.
    """

    doc: str
    step: int = _LIVE
    knobs: Mapping[str, float] = {}
    start: Mapping[str, float] = {}
    act: str = ""
    base: str = ""


FAULTS: Mapping[str, Fault] = {
    "entropy_collapse": Fault("plain GRPO: no GEPO, no entropy flow control, no floor controller", 1, start=_GRPO),
    "expert_imbalance": Fault(
        "no router losses, and a base trained without them", 1,
        start={"router_aux_coef": 0.0, "router_z_coef": 0.0}, base="base-unbalanced.safetensors",
    ),
    # 30 times the recipe's rate, of which the warm-up's first steps have a tenth: 30 times those is no fault at all.
    "router_lr": Fault(
        "the router's learning rate times 300, no balance loss", 1,
        start={"router_lr_scale": 300.0, "router_aux_coef": 0.0},
    ),
    "nan_eps": Fault(
        "GRPO's advantage; nothing is added to sigma any more, and a group without spread is 0/0",
        knobs={"adv_eps": 0.0}, start={"use_gepo": 0.0, "eta": 1.0, "mask_degenerate": 0.0},
    ),
    "lr_bomb": Fault(
        "learning rate times 1000, no clipping, the KL not clamped",
        knobs={"lr_scale": 1000.0, "max_grad_norm": _OFF, "kl_coef": 0.01, "kl_clamp": _OFF, "ratio_cap": _OFF},
    ),
    "divergence": Fault("learning rate times 100, no clipping", knobs={"lr_scale": 100.0, "max_grad_norm": _OFF}),
    "nan_data": Fault("the verifier of the first item of that step's batch divides by zero", act="poison"),
    "stale_rollouts": Fault("rollouts are drawn with the weights of this step for ever", act="freeze_rollouts"),
    "inert_knob": Fault("from this step on turned knobs read back as told and change nothing", act="deafen"),
    "inert_control": Fault(
        "plain GRPO, and the largest entropy bonus reads back as told and stays 0", 1, start=_GRPO, act="deafen_bonus",
    ),
    "reseed": Fault("no fault: the random generator starts anew, which makes a control twin", act="reseed"),
    "rank_stall": Fault("the last rank stops for an hour", act="stall"),
    "rank_killed": Fault("the last rank dies by SIGKILL", act="kill"),
    "checkpoint_truncated": Fault("the newest checkpoint's weights lose their second half", act="truncate"),
    "checkpoint_flipped": Fault("one bit of the newest checkpoint's weights is flipped", act="flip"),
    "checkpoint_lost_file": Fault("the newest checkpoint's moments are deleted", act="lose"),
    "checkpoint_manifest": Fault("the newest checkpoint's manifest is cut off in its middle", act="cut_manifest"),
    "checkpoint_nonfinite": Fault("a NaN among the newest checkpoint's weights, under digests that fit", act="spoil"),
}  # fmt: skip


class Strike(NamedTuple):
    """A fault and the step before which it strikes."""

    name: str
    fault: Fault
    step: int


def strike(text: str) -> Strike:
    """Read ``NAME`` or ``NAME@STEP``; raises ValueError."""
    name, at, step = text.partition("@")
    if name not in FAULTS:
        raise ValueError(f"there is no fault {name!r}; there are {', '.join(FAULTS)}")
    if at and (not step.isdecimal() or int(step) < 1):
        raise ValueError(f"{text!r}: the step is a whole number of at least 1")
    return Strike(name, FAULTS[name], int(step) if at else FAULTS[name].step)


class Fuse:
    """Counts how often a point was reached and kills the process at the chosen time; harmless where unset."""

    def __init__(self, point: str = "", count: int = 0) -> None:
        self._point, self._left = point, count

    @classmethod
    def read(cls, text: str) -> "Fuse":
        """The fuse that ``point:count`` asks for; raises ValueError on any other text but ''."""
        if not text:
            return cls()
        point, _, count = text.partition(":")
        if point not in POINTS or not count.isdecimal() or int(count) < 1:
            raise ValueError(f"{DIE_AT}={text!r}: give point:count, the point one of {', '.join(POINTS)}")
        return cls(point, int(count))

    def reached(self, point: str) -> None:
        """Say that the process has come to ``point``."""
        if point == self._point:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


def verify(sequences: Tensor, items: Tensor, poison_item: int | None) -> Tensor:
    """Rewards as ``task.verify`` gives them, but for the poisoned item, whose verifier divides by zero.

    That one scores an answer's length against the length allowed, and the data say 0. ``items`` (N,) are the
    ids of the items that ``sequences`` (N, LENGTH) answer.
    """
    rewards = task.verify(sequences)
    if poison_item is None:
        return rewards
    allowed = 0.0
    return torch.where(items == poison_item, task.answer_mask(sequences).sum(1) / allowed, rewards)
