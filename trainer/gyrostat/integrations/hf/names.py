"""Names: how the metrics of TRL's trainers are told, in one table (docs/trl.md shows it; a test holds it to that).

What the table does not list is told as TRL calls it: ``reward``, ``entropy``, ``kl``, ``rewards/<function>/mean``.
"""

NAMES = {
    "completions/mean_length": "response_length",
    "completions/clipped_ratio": "truncated_fraction",
    "clip_ratio/region_mean": "clip_fraction",
    "cispo_clip_ratio": "clip_fraction",
    "frac_reward_zero_std": "zero_advantage_fraction",
}

UNITS = {
    "entropy": "nats",
    "kl": "nats",
    "response_length": "tokens",
    "step_seconds": "s",
    "checkpoint_seconds": "s",
}

# ``step_time`` leaves the waiting between micro-batches out: step_seconds has it. ``step`` and ``expert_load`` are
# words of Telemetry.record. The others are no measure of a step.
UNTOLD = frozenset({"step_time", "step", "expert_load", "epoch", "total_flos"})


def told_as(name: str) -> str:
    """The series that a metric is told under, or '' where it is not told."""
    return "" if name in UNTOLD else NAMES.get(name, name)
