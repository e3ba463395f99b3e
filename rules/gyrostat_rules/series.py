"""Names of series and what a non-finite value in each of them means.

*Poison*: the number feeds or measures the update, so NaN or infinity in it destroys or has destroyed the
policy. *Undefined*: a mean over nothing, e.g. a length where every sample was aborted; noted, never acted on.
A name nobody knows is undefined: a sidecar that cries wolf over a custom metric is switched off.
"""

import re
from functools import lru_cache

POISON, UNDEFINED = "poison", "undefined"

# Tokens of a name, not substrings: `loss_scale` is no loss, `grad_norm_clip_fraction` no gradient norm.
_POISON = {
    "loss", "policy_loss", "pg_loss", "actor_loss", "value_loss", "vf_loss", "critic_loss", "aux_loss", "z_loss",
    "router_aux_loss", "router_z_loss", "grad_norm", "gradient_norm", "param_norm", "update_norm", "entropy",
    "kl", "kl_loss", "ppo_kl", "approx_kl", "reward", "reward_mean", "reward_std", "score", "advantage",
    "advantage_mean", "advantage_std", "log_prob", "logprob", "ratio", "importance_ratio", "parameters",
}  # fmt: skip
_APART = {"eval", "val", "valid", "validation", "test"}
_SPLIT = re.compile(r"[/.:]+")


@lru_cache(maxsize=4096)
def meaning(name: str) -> str:
    """POISON or UNDEFINED. ``actor/grad_norm`` and ``train/loss`` are read by their last part."""
    parts = [p for p in _SPLIT.split(name.lower()) if p]
    if not parts or _APART & set(parts[:-1]) or parts[-1].split("_")[0] in _APART:
        return UNDEFINED
    return POISON if parts[-1] in _POISON else UNDEFINED


# What the trainer says about itself; the engine reads these, no rule is written on them.
STEP_APPLIED = "step_applied"
GUARD_EXHAUSTED = "guard_exhausted"
PARAMS_FINITE = "params_finite"
CHECKPOINT_BUSY = "checkpoint_busy"
DATA_CURSOR = "data_cursor"
DATA_ITEMS = "data_items"
SUSPECT_ITEM = "suspect_item"
