"""Families: every generator by its name, healthy and faulty, in one table each; and a run made of one by its seed."""

from collections.abc import Mapping
from random import Random

import experts_told
import faults_of_numbers as numbers
import faults_of_policy as policies
import pretraining
import rlvr
from course import Course, Faulty, Healthy, Run, cut
from kinds import deadline

# The kind is what a naive rule would raise.
HEALTHY: Mapping[str, tuple[Healthy, str]] = {
    "learns": (rlvr.learns, "entropy_collapse"),
    "hard_task": (rlvr.hard_task, "reward_collapse"),
    "filtered_groups": (rlvr.filtered_groups, "no_update"),
    "solved": (rlvr.solved, "entropy_collapse"),
    "longer_answers": (rlvr.longer_answers, "truncation"),
    "woken": (rlvr.woken, "entropy_explosion"),
    "scored": (rlvr.scored, "reward_collapse"),
    "interleaved": (rlvr.interleaved, "nan_inf"),
    "asynchronous": (rlvr.asynchronous, "train_infer_mismatch"),
    "curriculum": (rlvr.curriculum, "reward_collapse"),
    "tunes": (pretraining.tunes, "loss_spike"),
    "small_batches": (pretraining.small_batches, "loss_spike"),
    "warmed_up": (pretraining.warmed_up, "grad_explosion"),
    "restarted_rates": (pretraining.restarted_rates, "loss_spike"),
    "other_data": (pretraining.other_data, "loss_spike"),
    "bad_rows": (pretraining.bad_rows, "nan_inf"),
    "evaluated": (pretraining.evaluated, "stall_dataloader"),
    "loader_pauses": (pretraining.loader_pauses, "stall_dataloader"),
    "scaled": (pretraining.scaled, "loss_scale_floor"),
    "pretrains": (pretraining.pretrains, "expert_imbalance"),
    "resumes": (pretraining.resumes, "resume_jump"),
    "even_experts": (experts_told.even_experts, "expert_imbalance"),
    "specialists": (experts_told.specialists, "expert_imbalance"),
}

FAULTY: Mapping[str, Faulty] = {
    "nan_for_good": numbers.nan_for_good,
    "nan_filtered": numbers.nan_filtered,
    "nan_vanished": numbers.nan_vanished,
    "nan_after_blowup": numbers.nan_after_blowup,
    "grad_jump": numbers.grad_jump,
    "grad_growth": numbers.grad_growth,
    "loss_jump": numbers.loss_jump,
    "scale_to_its_floor": numbers.scale_to_its_floor,
    "memory_leak": numbers.memory_leak,
    "loader_stalls": numbers.loader_stalls,
    "optimizer_lost": numbers.optimizer_lost,
    "entropy_fast": policies.entropy_fast,
    "entropy_slow": policies.entropy_slow,
    "entropy_rises": policies.entropy_rises,
    "kl_rises": policies.kl_rises,
    "reward_gone": policies.reward_gone,
    "reward_declines": policies.reward_declines,
    "silent_death": policies.silent_death,
    "reward_hacked": policies.reward_hacked,
    "verifier_dead": policies.verifier_dead,
    "answers_shrink": policies.answers_shrink,
    "answers_cut_off": policies.answers_cut_off,
    "detached": policies.detached,
    "rollouts_apart": policies.rollouts_apart,
    "rollouts_drift": policies.rollouts_drift,
    "router_collapses": policies.router_collapses,
    "balance_lost": policies.balance_lost,
}

# Never among what thresholds are calibrated on: one healthy, one faulty, neither like any other.
JUDGED_ONLY = frozenset({"curriculum", "silent_death"})
AFTER = 50  # rows told after a deadline: enough to see that a fault was found late


def generated(family: str, seed: int, rows: int) -> Run:
    """The run of a family and a seed; the same three always give the same run.

    A healthy one tells ``rows`` rows, a faulty one at most: it ends ``AFTER`` rows behind its deadline.
    """
    dice = Random(f"{family}/{seed}")
    if family in HEALTHY:
        make, tempts = HEALTHY[family]
        return Run(family, seed, make(dice, rows), None, tempts, _first_line(make.__doc__))
    course, fault = FAULTY[family](dice, rows)
    return Run(family, seed, _ended(course, deadline(fault.kind, fault.plain)), fault)


def _ended(course: Course, due: int) -> Course:
    return cut(course, min(course.rows, due + 1 + AFTER))


def _first_line(text: str | None) -> str:
    return (text or "").partition("\n")[0]
