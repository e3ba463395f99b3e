"""Kinds: the faults in the words of the corpus, and by when each must be told, with the reason; one table.

A deadline is ``rows`` after the row at which the fault is *plain*: where its way without the noise has come to what
``plain`` says. It is set by what a person loses by hearing later, never by what a rule can do.
"""

from collections.abc import Mapping
from typing import NamedTuple


class Kind(NamedTuple):
    """``limit``: the number in ``plain``, where it has one, which the generator of the fault goes by."""

    rows: int
    plain: str
    why: str
    action: str
    limit: float = 0.0


KINDS: Mapping[str, Kind] = {
    "nan_inf": Kind(
        1, "the first value that is not finite",
        "every update after it is lost; one more row tells a dead run from a bad row that was skipped",
        "stop; go back to a checkpoint from before the first value that is not finite",
    ),
    "loss_scale_floor": Kind(
        2, "the loss scale is 1 or less",
        "at its floor every step overflows and is skipped: nothing is learnt",
        "stop; train in bf16, or go back and lower the learning rate",
        limit=1.0,
    ),
    "grad_explosion": Kind(
        2, "the norm is {limit:g} times its usual",
        "a second and a third such row show that it was no single batch; the optimizer's moments take them in",
        "go back to a checkpoint from before it, lower the learning rate, clip",
        limit=10.0,
    ),
    "loss_spike": Kind(
        3, "the loss is {limit:g} times its usual",
        "a bad batch is over in a row; what is not back within three costs every batch since",
        "go back to a checkpoint from before it and pass the batches over",
        limit=1.4,
    ),
    "entropy_collapse": Kind(
        5, "entropy is a quarter of its start, or 0.15 nats, the lower",
        "the policy still draws unlike completions there; later nothing brings it back but a rollback",
        "switch entropy control on; go back where it does not rise",
        limit=0.25,
    ),
    "entropy_explosion": Kind(
        5, "entropy is {limit:g} times its usual and half above its start",
        "answers turn to noise, and the reward follows within some ten steps",
        "take the entropy bonus away; lower the learning rate",
        limit=2.0,
    ),
    "kl_explosion": Kind(
        3, "KL to the reference is {limit:g} times its usual",
        "the policy leaves what it was trained on, and each step goes further",
        "go back; raise the KL coefficient or lower the learning rate",
        limit=10.0,
    ),
    "reward_collapse": Kind(
        5, "the reward is a third of its usual",
        "five steps of a policy that answers nothing right are five too many",
        "go back to a checkpoint from before it",
        limit=0.33,
    ),
    "reward_hacking": Kind(
        20, "the part of the reward that counts is {limit:g} of its usual, and the whole is higher",
        "a held-out score comes every ten rows, and two of them are needed",
        "stop; mend the verifier, go back to before the two parted",
        limit=0.6,
    ),
    "reward_stuck": Kind(
        20, "the reward is the same to the third decimal as the row before",
        "ten equal rows are no chance any more; twenty are what a batch of a large run costs",
        "look into the verifier: it answers the same to everything",
    ),
    "length_collapse": Kind(
        5, "completions are {limit:g} of their usual length",
        "a policy that answers at once has forgotten how to reason",
        "go back; look into the length's part of the reward",
        limit=0.5,
    ),
    "truncation": Kind(
        5, "{limit:g} of the completions are cut off",
        "what is cut off is scored as wrong, and the policy learns from that",
        "raise the limit, or penalise what is overlong; go back",
        limit=0.3,
    ),
    "no_update": Kind(
        2, "a gradient of exactly 0, though the groups have spread",
        "every step from there on is paid for and learns nothing",
        "stop; find out what detached the loss from the weights",
    ),
    "train_infer_mismatch": Kind(
        5, "KL between rollouts and training is {limit:g}",
        "what is learnt is no longer about what was drawn; a mixture of experts dies of it within some ten steps",
        "restart the rollout engine with the trainer's weights",
        limit=1.5e-2,
    ),
    "expert_imbalance": Kind(
        5, "rho_eff is {limit:g}, or the balance loss a quarter above its ideal",
        "experts that get no tokens get no gradient: the longer, the fewer come back",
        "ask what it is; where the load is at fault, balance it without a gradient",
        limit=0.45,
    ),
    "resume_jump": Kind(
        4, "the first row after the resumption",
        "an optimizer that was not restored walks away from the checkpoint while nobody looks",
        "stop; resume with the optimizer's state and the data's place",
    ),
    "oom": Kind(
        -5, "the row at which memory is out",
        "five rows are what a checkpoint and an orderly stop take",
        "keep a checkpoint, stop, find what holds memory on to",
    ),
    "stall_dataloader": Kind(
        4, "waiting for data takes as long as the step itself",
        "devices are paid for and wait; five rows of it are no pause",
        "look into the data loader: workers, cache, network",
        limit=1.0,
    ),
}  # fmt: skip


def deadline(kind: str, plain: int) -> int:
    """The row by which a fault that is plain at row ``plain`` must have been told."""
    return plain + KINDS[kind].rows


def reason(kind: str) -> str:
    """The deadline of a kind in words."""
    one = KINDS[kind]
    return f"due {one.rows:+d} rows from: {one.plain.format(limit=one.limit)}; {one.why}"
