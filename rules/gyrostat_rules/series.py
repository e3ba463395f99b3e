"""Names of series and what a non-finite value in each of them means.

*Poison*: the number feeds or measures the update, so NaN or infinity in it destroys or has destroyed the
policy. *Undefined*: a mean over nothing, e.g. a length where every sample was aborted; noted, never acted on.
A name nobody knows is undefined: a sidecar that cries wolf over a custom metric is switched off.
"""

import re
from functools import lru_cache

POISON, UNDEFINED = "poison", "undefined"

# Tokens of a name, not substrings: `loss_scale` is no loss, `grad_norm_clip_fraction` no gradient norm. No spreads:
# that of a single sample is NaN in every healthy run, and where one feeds the update, the loss is NaN with it.
_POISON = {
    "loss", "grad_norm", "gradient_norm", "param_norm", "update_norm", "entropy", "kl", "ppo_kl", "approx_kl",
    "kl_divergence", "reward", "rewards", "score", "advantage", "advantages", "log_prob", "log_probs", "logprob",
    "logprobs", "ratio", "importance_ratio", "parameters",
}  # fmt: skip
_UPDATE = ("loss", "grad_norm", "gradient_norm", "param_norm", "update_norm", "parameters")
_APART = {"eval", "val", "valid", "validation", "test", "best", "lowest", "min", "max", "target"}
_PLAIN = {"train", "training", "total", "global", "mean", "avg", "average", "policy", "actor", "critic"}
_SPLIT = re.compile(r"[/.:]+")


@lru_cache(maxsize=4096)
def meaning(name: str) -> str:
    """POISON or UNDEFINED. ``actor/grad_norm``, ``train_loss``, ``rewards/mean`` are read by what they measure."""
    word = measured(name)
    return POISON if word in _POISON or word.endswith(("_loss", "_grad_norm")) else UNDEFINED


@lru_cache(maxsize=4096)
def feeds_update(name: str) -> bool:
    """True for loss, gradient and parameters: not finite, they are harm from the first step on."""
    return measured(name).endswith(_UPDATE)


@lru_cache(maxsize=4096)
def measured(name: str) -> str:
    """What is measured, bare of where and how it was averaged; '' for what is told of evaluation, or as a record."""
    parts = [p for p in _SPLIT.split(re.sub(r"[\s-]+", "_", name.lower())) if p]
    if len(parts) > 1 and parts[-1] in _PLAIN:
        parts.pop()
    words = parts[-1].split("_") if parts else []
    if not words or _APART & {*parts[:-1], words[0], words[-1]}:
        return ""
    while len(words) > 1 and words[0] in _PLAIN:
        words = words[1:]
    while len(words) > 1 and words[-1] in _PLAIN:
        words = words[:-1]
    return "_".join(words)


# What the trainer says about itself; the engine reads these, no rule is written on them.
STEP_APPLIED = "step_applied"
GUARD_EXHAUSTED = "guard_exhausted"
PARAMS_FINITE = "params_finite"
CHECKPOINT_BUSY = "checkpoint_busy"
WEIGHT_SYNC_BUSY = "weight_sync_busy"
DATA_CURSOR = "data_cursor"
DATA_ITEMS = "data_items"
SUSPECT_ITEM = "suspect_item"

# What a rollout engine's page says about itself.
REQUESTS_PAUSED = "requests_paused"
