"""RL: what the policy learns, and from what: reward, entropy, distances, answers, rollouts."""

from board import Board, Row
from panel import lines
from query import told, values

BOARD = Board(
    "gyrostat-rl",
    "Gyrostat: RL",
    "What the policy learns and from what. Names are those that trainers use; docs/series.md says how they are read.",
    (
        Row(
            "Learning",
            (
                lines(
                    "Reward",
                    "none",
                    "Mean reward of the batch.",
                    values(told("reward", "rewards", "score", "reward_average")),
                    runbook="reward",
                ),
                lines(
                    "Spread of rewards",
                    "none",
                    "Without spread within groups there is nothing to learn from.",
                    values(told("reward_std")),
                    low=0,
                    runbook="reward",
                ),
                lines(
                    "Groups that teach nothing",
                    "percentunit",
                    "Share of groups whose completions all got the same reward.",
                    values(told("zero_advantage_fraction", "zero_adv_frac", "frac_reward_zero_std")),
                    low=0,
                    high=1,
                    runbook="reward",
                ),
                lines(
                    "Entropy",
                    "none",
                    "Nats a token, and the trainer's floor where it tells one.",
                    values(told("entropy", "entropy_average", "entropy_floor")),
                    low=0,
                    runbook="entropy",
                ),
                lines(
                    "Clipped",
                    "percentunit",
                    "Share of tokens whose ratio was clipped.",
                    values(told("clip_fraction", "pg_clipfrac")),
                    low=0,
                    high=1,
                    runbook="divergence",
                ),
                lines(
                    "Validation",
                    "none",
                    "Scores of evaluations, where there are any.",
                    values("(eval|val|valid|validation|test).*(score|accuracy|reward|pass).*"),
                    runbook="reward",
                ),
            ),
        ),
        Row(
            "Distances",
            (
                lines(
                    "KL to the reference",
                    "none",
                    "Nats a token.",
                    values(told("kl", "kl_k1", "kl_divergence")),
                    runbook="divergence",
                ),
                lines(
                    "Rollouts against trainer",
                    "none",
                    "KL between the policy that is trained and the one that drew the rollouts, in nats.",
                    values(told("mismatch_kl", "ppo_kl", "approx_kl")),
                    runbook="mismatch",
                ),
                lines(
                    "Staleness",
                    "none",
                    "Policy versions between the rollouts and the trainer.",
                    values(told("policy_lag", "staleness", "off_policy_level", "off_policy_steps", "trajectory_age")),
                    low=0,
                    runbook="mismatch",
                ),
            ),
        ),
        Row(
            "Answers",
            (
                lines(
                    "Length",
                    "none",
                    "Tokens of an answer.",
                    values(told("response_length", "completion_length", "mean_length")),
                    low=0,
                    runbook="reward",
                ),
                lines(
                    "Different answers",
                    "percentunit",
                    "Share of a batch's answers that are not repeated.",
                    values(told("unique_fraction")),
                    low=0,
                    high=1,
                    runbook="entropy",
                ),
                lines(
                    "Cut off",
                    "percentunit",
                    "Share of answers that ran into the limit.",
                    values(told("truncated_fraction", "clipped_ratio")),
                    low=0,
                    high=1,
                    runbook="reward",
                ),
                lines(
                    "Session, 99th percentile",
                    "s",
                    "A round with the environment, the slowest of a hundred.",
                    values(told("session_round_p99", "env_step_seconds/p99", "environment_seconds/p99")),
                    low=0,
                    runbook="inference",
                ),
                lines(
                    "Pivots",
                    "none",
                    "States from which rollouts begin anew, and their yield.",
                    values(told("pivot_pool", "pivot_yield", "pivot_reward")),
                    runbook="reward",
                ),
                lines(
                    "Learning rate",
                    "none",
                    "A knob that moves without a directive is a finding.",
                    values(told("lr", "learning_rate")),
                    low=0,
                    runbook="knobs",
                ),
            ),
        ),
    ),
)
