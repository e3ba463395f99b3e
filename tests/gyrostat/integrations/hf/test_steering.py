"""What the sidecar may set and ask of real TRL and Transformers trainers, and that they do it.

One process trains all of it (steer_grpo.py); each test looks at one thing that must hold.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from trl_runs import need_trl, results

pytestmark = pytest.mark.trl
Parts = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parts]:
    need_trl()
    yield results("steer_grpo.py", tmp_path_factory.mktemp("steered"))


def test_a_step_that_is_not_finite_moves_nothing(parts: Parts) -> None:
    """Loss NaN at step 3: the weights after it are those before it, bit for bit, and the run goes on learning."""
    guarded = parts["guarded"]["weights"]
    assert guarded["3"] == guarded["2"] != guarded["1"]
    assert guarded["4"] != guarded["3"]
    assert parts["guarded"]["finite"]


def test_a_guard_that_is_turned_off_stays_out(parts: Parts) -> None:
    """guard=False: the same step destroys the weights, as it would without us."""
    assert not parts["unguarded"]["finite"]


def test_the_learning_rate_is_scaled_and_nobody_sees_it(parts: Parts) -> None:
    """lr_scale 0.5 moves the weights by half; schedule and optimizer read the rate as it was."""
    whole, half = parts["scaled"]["moved"]
    assert half == pytest.approx(whole / 2)
    assert parts["scaled"]["rate"] == 0.0  # of a linear schedule's end, after its one step


@pytest.mark.parametrize("kind", ["grpo", "plain"])
def test_a_rollback_in_process_puts_all_back(parts: Parts, kind: str) -> None:
    """Weights with all experts, moments, schedule, place and log are the checkpoint's, before the next step begins."""
    part = parts[kind]
    assert part["found"]["weights"] == part["found"]["wanted"]
    assert part["found"]["moments"]
    assert (part["found"]["at"], part["found"]["log"], part["found"]["lr"]) == (5, 5, 5)
    assert part["found"]["segment"] == 1


@pytest.mark.parametrize(("kind", "last", "back"), [("grpo", 16, 8), ("plain", 24, 19)])
def test_a_run_that_went_back_comes_to_its_last_step(parts: Parts, kind: str, last: int, back: int) -> None:
    """Every step up to max_steps is taken, past the epochs that were counted at the start."""
    steps = parts[kind]["steps"]
    assert steps == [*range(1, back + 1), *range(6, last + 1)]
    assert parts[kind]["step"] == last


def test_the_data_goes_on_past_what_was_seen(parts: Parts) -> None:
    """After a rollback over 3 steps, checkpoint-15 knows of 18 updates' data, and of its segment and directive."""
    kept = parts["grpo"]["kept"]
    assert (kept["drawn"], kept["segment"], kept["last_directive"]) == (18, 1, 1)
    assert parts["plain"]["epoch"] > 3  # 38 updates of 12 an epoch, where 24 were counted


def test_stop_begins_no_further_step_and_keeps_the_last(parts: Parts) -> None:
    """Ordered before step 4: three steps were taken, checkpoint-3 is there, train() returns."""
    assert parts["stopped"]["steps"] == [1, 2, 3]
    assert "checkpoint-3" in parts["stopped"]["saved"]
    assert parts["stopped"]["error"] == ""


def test_a_checkpoint_that_is_asked_for_is_written_once(parts: Parts) -> None:
    """Ordered before step 2, where none was due for long: checkpoint-2, and no other but that of the stop."""
    assert parts["stopped"]["saved"] == ["checkpoint-2", "checkpoint-3"]


def test_each_knob_is_turned_where_it_is_used(parts: Parts) -> None:
    """GRPO with a reference model: every knob is offered as TRL had it, and reads anew in the place it acts in."""
    turned = parts["turned"]
    assert turned["offered"] == {
        "lr_scale": 1.0, "max_grad_norm": 1.0, "kl_coef": 0.02, "eps_lo": 0.2, "eps_hi": 0.2, "temperature": 1.0,
        "alpha_max": 0.0, "min_entropy_floor": 0.3, "router_aux_coef": 0.001,
    }  # fmt: skip
    read = [turned[name] for name in ("max_grad_norm", "kl_coef", "eps_lo", "eps_hi")]
    assert read == [0.5, 0.04, 0.18, 0.22]
    assert turned["temperature"] == [0.95] * 3
    assert turned["reference"] == 0.95  # of the KL, else it would measure the temperature
    assert turned["router"] == [0.1, 0.1]
    assert turned["bonus"]


def test_prompts_that_are_passed_over_never_come_again(parts: Parts) -> None:
    """The rest of the generation is left at once, and its prompts are drawn in no later epoch."""
    drawn = {int(step): prompts for step, prompts in parts["passed_over"]["drawn"].items()}
    assert list(drawn)[:3] == [1, 3, 6]  # a generation serves three steps; the first was left after two
    assert not set(drawn[1]) & {prompt for step, prompts in drawn.items() if step > 1 for prompt in prompts}
    assert parts["passed_over"]["step"] == 40


def test_what_cannot_go_back_in_process_says_why(parts: Parts) -> None:
    """PEFT: no rollback is offered, and it is said once, by name; the other procedures are."""
    assert parts["peft"]["offered"] == ["skip_data", "checkpoint", "stop"]
    assert parts["peft"]["said"].count("PEFT adapters") == 1


def test_a_version_without_the_internals_says_which(parts: Parts) -> None:
    """A trainer without _run_epoch, as Transformers before 5 has none: no rollback, and the method is named."""
    assert "rollback" not in parts["old"]["offered"]
    assert "has no _run_epoch" in parts["old"]["said"]


def test_a_restart_goes_where_it_was_made_for(parts: Parts) -> None:
    """resume.json is obeyed though the command line names no checkpoint: weights, knobs, segment, data, last step."""
    part = parts["resumed"]
    assert part["found"]["weights"] == parts["grpo"]["found"]["wanted"]
    assert part["found"]["knobs"]["lr_scale"] == 0.5
    assert (part["found"]["segment"], part["found"]["last"]) == (2, 7)
    assert part["steps"] == [*range(6, 21)]
    assert part["drawn"] == 34  # 15 updates behind the 19 that the life before had drawn


def test_a_resume_that_left_the_experts_out_is_said(parts: Parts) -> None:
    """Transformers 5.24 resumes a Qwen3-MoE without its experts, which are single in the file; nobody else says so."""
    half = parts["half"]
    assert half["step"] == 17
    assert half["whole"] or "without" in half["said"], "a resume that is not whole must be said"
    assert not half["whole"] or half["said"] == ""
