"""TensorBoardTags: what trainers call their numbers in TensorBoard, where it is not what their console calls them.

An alias table for ``logs.names``, to stand beside those of ``logs.formats``: verl, slime, AReaL, ROLL and OLMo-core
draw under the names they print. Read from the trainers' sources.
"""

from collections.abc import Mapping

_HF = {  # TRL and whatever else is a Hugging Face Trainer
    "train/completions/mean_length": "response_length", "train/completions/clipped_ratio": "truncated_fraction",
    "train/clip_ratio/region_mean": "clip_fraction", "train/clip_ratio": "clip_fraction",
    "train/sampling/sampling_logp_difference/mean": "mismatch_diff", "train/aux_loss": "balance_loss",
    "train/train_loss": "",  # the whole run's mean, told with its last step
}  # fmt: skip
_MEGATRON = {
    "lm loss": "loss", "iteration-time": "step_time", "seq_load_balancing_loss": "balance_loss",
    "global_load_balancing_loss": "balance_loss", "rl/entropy_term": "entropy", "rl/kl_term": "kl",
    "rl/truncated_from_above": "clip_fraction", "moe/*": "",
}  # fmt: skip
_OPENRLHF = {
    "train/ppo_clip_ratio": "clip_fraction", "train/vllm_kl": "mismatch_kl", "train/logprobs_diff": "mismatch_diff",
    "train/rollout/truncated_rate": "truncated_fraction", "train/rollout/response_length_mean": "response_length",
    "train/timing/step_total": "step_time", "train/critic_*": "",
}  # fmt: skip
_NEMO_RL = {
    "train/gen_kl_error": "mismatch_kl", "train/approx_entropy": "entropy", "train/kl_penalty": "kl",
    "train/policy_kl_error": "", "train/js_divergence_error": "", "timing/train/checkpointing": "checkpoint_seconds",
}  # fmt: skip
_TORCHTITAN = {
    "loss_metrics/global_avg_loss": "loss", "loss_metrics/global_max_loss": "", "throughput(tps)": "throughput",
    "time_metrics/end_to_end(s)": "step_time",
}  # fmt: skip

TAGS: Mapping[str, str] = {**_HF, **_MEGATRON, **_OPENRLHF, **_NEMO_RL, **_TORCHTITAN}
