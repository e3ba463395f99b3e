"""Scenarios: the faults that the demonstration shows, and the trainer's command line for each of its three runs.

Every scenario trains the reference model three times with one seed: *clean* (no fault), *untreated* (the fault,
nobody there) and *treated* (the fault, and the sidecar as a process beside it).
"""

import sys
from pathlib import Path
from typing import NamedTuple

from gyrostat_agent.demo.errors import DemoError

CLEAN, UNTREATED, TREATED = RUNS = ("clean", "untreated", "treated")
BASELINES = (CLEAN, UNTREATED)
STEPS, FEWEST_STEPS = 60, 30
ALL = "all"
NOTHING, POISON = "", "poison"  # faults that are none of the trainer's own: none at all, and a poisoned item
_PATIENCE = 5.0  # the sidecar answers within milliseconds; a machine that is busy with other things may need more
_FAULT_AT = 0.35  # of the steps: late enough for certified checkpoints, early enough to show what follows


class Scenario(NamedTuple):
    """A fault. ``guard``: whether the treated trainer skips steps that are not finite (StepGuard).

    ``patience``: seconds that it gives the sidecar after such a step, before the next; it goes on once answered.
    ``fault`` is the reference trainer's name for it, POISON or NOTHING; it is there ``from_start`` or from
    ``fault_step`` on; ``options`` are given to all three runs. ``least_steps``: what it takes to be seen to the end.
    """

    name: str
    title: str
    story: str
    guard: bool
    patience: float
    fault: str = POISON
    options: tuple[str, ...] = ()
    from_start: bool = False
    least_steps: int = 0


SCENARIOS = {
    s.name: s
    for s in (
        Scenario(
            "nan_data",
            "one poisoned item in the data; the trainer has a step guard",
            "One item's verifier divides by zero, so its reward is infinite and the loss is not finite. The guard"
            " skips the step and the same batch comes again; the sidecar has the item passed over.",
            guard=True,
            patience=_PATIENCE,
        ),
        Scenario(
            "nan_applied",
            "one poisoned item in the data; no step guard, the NaN reaches the weights",
            "One item's verifier divides by zero, so its reward is infinite. Nothing skips the step: the policy's"
            " weights are destroyed, and the sidecar has the run go back to a certified checkpoint, the item"
            " passed over.",
            guard=False,
            patience=_PATIENCE,
        ),
        Scenario(
            "nan_crash",
            "one poisoned item in the data; no step guard, and the trainer dies of the NaN at once",
            "One item's verifier divides by zero, so its reward is infinite. Nothing skips the step, and the trainer"
            " dies before it could obey anybody: the sidecar has it started anew from a certified checkpoint, the"
            " item passed over.",
            guard=False,
            patience=0.0,
        ),
        Scenario(
            "nan_advantage",
            "somebody sets adv_eps to 0 in mid-run; the trainer has a step guard",
            "GRPO's advantages, and a hand sets adv_eps to 0: a group whose completions all got the same reward is 0/0."
            " The guard skips the step; the sidecar sees the knob that nobody told to turn, and puts it back.",
            guard=True,
            patience=_PATIENCE,
            fault="nan_eps",
            options=("--set", "use_gepo=0", "--set", "eta=1", "--set", "mask_degenerate=0"),
        ),
        Scenario(
            "divergence",
            "somebody sets the learning rate to a hundredfold and the clipping off; no NaN ever shows",
            "The policy is destroyed within two steps, and every number stays finite: the reward is simply gone. The"
            " sidecar sees it, and the knobs that nobody told to turn, and has the run go back to a certified"
            " checkpoint, with which the knobs come back.",
            guard=False,
            patience=0.0,
            fault="divergence",
        ),
        Scenario(
            "nan_loud",
            "somebody sets the learning rate to a thousandfold, clipping and clamps off",
            "The policy is destroyed at once, with a NaN or without, as luck will have it. The sidecar mends either:"
            " the run goes back to a certified checkpoint, with which the knobs come back.",
            guard=False,
            patience=0.0,
            fault="lr_bomb",
        ),
        Scenario(
            "entropy_collapse",
            "plain GRPO: nothing keeps the policy's entropy up",
            "No floor, no entropy flow control: the answers become ever more alike until every group has one reward"
            " and nothing is left to learn from. The sidecar has the trainer's own control switched on.",
            guard=False,
            patience=0.0,
            fault="entropy_collapse",
            from_start=True,
            least_steps=110,
        ),
        Scenario(
            "expert_imbalance",
            "no router losses, and a base trained without them",
            "A quarter of the experts get next to nothing. The sidecar asks what it is, and has the weight of the"
            " router's balance loss raised.",
            guard=False,
            patience=0.0,
            fault="expert_imbalance",
            from_start=True,
            least_steps=150,
        ),
        Scenario(
            "mismatch",
            "the rollout engine keeps the weights of one step for ever",
            "What is trained drifts away from what the answers are drawn from. The router is not at fault and is left"
            " alone: the sidecar has the run started anew from a certified checkpoint, rollout engine and all.",
            guard=False,
            patience=0.0,
            fault="stale_rollouts",
        ),
        Scenario(
            "inert_knob",
            "nothing keeps the entropy up, and the trainer says yes to its bonus and ignores it",
            "Plain GRPO again, but the entropy bonus reads back as allowed and stays nothing. The sidecar sees that it"
            " does not move, takes back what it turned, and has entropy kept up by the flow control alone.",
            guard=False,
            patience=0.0,
            fault="inert_control",
            from_start=True,
            least_steps=130,
        ),
        Scenario(
            "clean",
            "nothing at all goes wrong",
            "A healthy run. The sidecar is to say nothing and do nothing.",
            guard=True,
            patience=_PATIENCE,
            fault=NOTHING,
        ),
    )
}


class Layout(NamedTuple):
    """Where one of the three runs keeps its files: ``folder`` and what lies in it."""

    folder: Path

    @property
    def run_dir(self) -> Path:
        """The run directory: records, and beside a sidecar its directives and journal."""
        return self.folder / "run"

    @property
    def checkpoints(self) -> Path:
        """Checkpoint root."""
        return self.folder / "checkpoints"

    @property
    def summary(self) -> Path:
        """What the trainer itself says its run came to."""
        return self.folder / "summary.json"

    @property
    def journal(self) -> Path:
        """The sidecar's journal."""
        return self.run_dir / "agent" / "journal.db"


def chosen(names: str) -> list[Scenario]:
    """The scenarios of those names, parted by commas, or every one for ``all``; raises DemoError naming the others."""
    if names == ALL:
        return list(SCENARIOS.values())
    wanted = list(dict.fromkeys(name.strip() for name in names.split(",")))
    if unknown := [name for name in wanted if name not in SCENARIOS]:
        raise DemoError(f"there is no scenario {unknown[0]!r}; choose of {', '.join(SCENARIOS)}, or {ALL}")
    return [SCENARIOS[name] for name in wanted]


def fault_step(scenario: Scenario, steps: int) -> int:
    """The step at which the fault strikes, in a run of ``steps`` steps."""
    return 1 if scenario.from_start else round(steps * _FAULT_AT)


def likeness(scenario: Scenario, run: str, steps: int, seed: int) -> tuple[object, ...]:
    """What makes a baseline what it is: two that are alike in it are the same run."""
    broken = run != CLEAN and scenario.fault != NOTHING
    fault = (scenario.fault, fault_step(scenario, steps)) if broken else ()
    return seed, steps, scenario.options, *fault


def command(scenario: Scenario, run: str, layout: Layout, steps: int, seed: int) -> list[str]:
    """What to start for one of the three runs."""
    trainer = [
        sys.executable, "-m", "gyrostat_reference", "--steps", str(steps), "--seed", str(seed),
        "--checkpoints", str(layout.checkpoints), "--checkpoint-every", "5",
        "--summary", str(layout.summary), "--run-dir", str(layout.run_dir),
    ]  # fmt: skip
    treated = run == TREATED
    trainer += ["--guard" if treated and scenario.guard else "--no-guard"]
    trainer += ["--patience", str(scenario.patience if treated else 0.0)]
    trainer += scenario.options
    if run != CLEAN:
        trainer += _broken(scenario, fault_step(scenario, steps))
    return [*_sidecar(layout), *trainer] if treated else trainer


def _broken(scenario: Scenario, step: int) -> list[str]:
    if scenario.fault == NOTHING:
        return []
    if scenario.fault == POISON:
        return ["--poison-at-step", str(step)]
    return ["--fault", scenario.fault if scenario.from_start else f"{scenario.fault}@{step}"]


def _sidecar(layout: Layout) -> list[str]:
    return [
        sys.executable, "-m", "gyrostat_agent", "run", "--run-dir", str(layout.run_dir),
        "--mode", "act", "--no-approvals", "--",
    ]  # fmt: skip
