"""The faults of the reference trainer, and their gate: each does appear, in at least nine of ten seeds, in time.

    python benchmarks/fault_gate.py                     10 seeds of each, about 10 CPU minutes
    python benchmarks/fault_gate.py --quick             2 of each
    python benchmarks/fault_gate.py --only divergence   of one fault alone; repeat for more

What is to be seen of a fault, and by which step, stands in ``CASES``. A run counts where
all of it was seen in time. Exit status 1 where that is so in less than nine runs of ten of any fault.
"""

import argparse
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from reference_campaign import Job, Run, runs

from gyrostat_reference.data import PromptData
from gyrostat_reference.settings import Settings

STRUCK = 20  # the step before which a fault strikes that isn't there from the start
ENOUGH = 0.9
STALE = 1e-2  # mismatch KL, nats: the usual cap of a mixture of experts; a healthy run stays far below it


class Sign(NamedTuple):
    """Something that is to be seen of a fault: first at a step from ``since`` to ``by``, where ``shows`` is true."""

    words: str
    shows: Callable[[Run, int], bool]
    by: int
    since: int = 1


class Case(NamedTuple):
    """A fault's ``steps`` and signs; ``never`` and why, where a run must not hold it to the end."""

    steps: int
    signs: tuple[Sign, ...]
    never: Mapping[str, Callable[[Run], bool]] = {}


class Sight(NamedTuple):
    """What was seen of a run: the first step of each sign of its case, 0 for never; and what is ``wrong`` with that."""

    run: Run
    steps: tuple[int, ...]
    wrong: tuple[str, ...]


def spread(run: Run, step: int) -> float:
    """CV of the experts' load in one step."""
    shares = run.shares[step - 1]
    return math.sqrt(sum((share * len(shares) - 1) ** 2 for share in shares) / len(shares))


def dead(run: Run, step: int) -> float:
    """Share of experts with less than a tenth of an even load in one step."""
    shares = run.shares[step - 1]
    return sum(share < 0.1 / len(shares) for share in shares) / len(shares)


def lost(run: Run, step: int) -> bool:
    """Loss or parameters of a step are not finite."""
    row = run.rows[step - 1]
    return not (math.isfinite(row["loss"]) and row["params_finite"])


def under(name: str, bound: float) -> Callable[[Run, int], bool]:
    """A value is below a bound."""
    return lambda run, step: run.rows[step - 1][name] < bound


def above(name: str, bound: float) -> Callable[[Run, int], bool]:
    """A value is above a bound."""
    return lambda run, step: run.rows[step - 1][name] > bound


def _ever_lost(run: Run) -> bool:
    return bool(run.died) or any(lost(run, step) for step in range(1, len(run.rows) + 1))


CASES: Mapping[str, Case] = {
    "entropy_collapse": Case(75, (
        Sign("entropy (running average) under 0.3 nats", under("entropy_average", 0.3), 31),
        Sign("and under 0.1", under("entropy_average", 0.1), 75),
    )),
    "expert_imbalance": Case(5, (
        Sign("CV of the experts' load above 1", lambda run, step: spread(run, step) > 1, 1),
        Sign("a quarter of the experts dead", lambda run, step: dead(run, step) >= 0.25, 5),
    )),
    "router_lr": Case(5, (Sign("CV of the experts' load above 1", lambda run, step: spread(run, step) > 1, 5),)),
    "nan_eps": Case(STRUCK + 1, (Sign("loss or parameters not finite", lost, STRUCK, STRUCK),)),
    "lr_bomb": Case(25, (
        Sign("loss or parameters not finite, or reward 0",
             lambda run, step: lost(run, step) or run.rows[step - 1]["reward"] == 0, 25, STRUCK),
    )),
    "divergence": Case(50, (
        Sign("reward 0", lambda run, step: run.rows[step - 1]["reward"] == 0, STRUCK + 2, STRUCK),
    ), {
        "a value not finite": _ever_lost,
        "a recovery: reward of 0.1 over the last ten steps": lambda run: run.mean("reward") >= 0.1,
    }),
    "nan_data": Case(STRUCK + 1, (
        Sign("reward infinite, and its item named",
             lambda run, step: math.isinf(run.rows[step - 1]["reward"]) and "suspect_item" in run.rows[step - 1],
             STRUCK, STRUCK),
        Sign("loss or parameters not finite", lost, STRUCK, STRUCK),
    )),
    "stale_rollouts": Case(STRUCK + 10, (
        Sign("rollouts a version behind", above("policy_lag", 0), STRUCK + 1, STRUCK + 1),
        Sign("and ten", above("policy_lag", 9), STRUCK + 10, STRUCK + 10),
        Sign(f"mismatch KL above {STALE:g} nats", above("mismatch_kl", STALE), STRUCK + 10, STRUCK + 1),
    )),
}  # fmt: skip


def main() -> int:
    """Print the runs as they end, the table and the verdict."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="2 seeds")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="runs at once")
    parser.add_argument("--only", action="append", choices=CASES, metavar="NAME", help=f"{', '.join(CASES)}; repeat")
    arguments = parser.parse_args()
    names = arguments.only or list(CASES)
    seeds = range(2 if arguments.quick else arguments.seeds)
    jobs = [job(name, seed) for name in names for seed in seeds]
    done: dict[str, list[Sight]] = {name: [] for name in names}
    for count, run in enumerate(runs(jobs, arguments.jobs), 1):
        done[run.name].append(seen(run, CASES[run.name]))
        print(f"[{count}/{len(jobs)}] {_line(done[run.name][-1])}", flush=True)
    return _verdict(done)


def job(name: str, seed: int) -> Job:
    """A run of ``seed`` that a fault will strike."""
    poison = PromptData(seed=seed).first_item_of_step(STRUCK) if name == "nan_data" else None
    return Job(name, Settings(steps=CASES[name].steps, seed=seed, faults=(name,), poison_item=poison))


def seen(run: Run, case: Case) -> Sight:
    """Look for all signs of a case. One that shows before its time is wrong too: the fault did not bring it."""
    numbers = range(1, len(run.rows) + 1)
    steps = tuple(next((step for step in numbers if sign.shows(run, step)), 0) for sign in case.signs)
    late = [
        f"not in time: {sign.words}"
        for sign, step in zip(case.signs, steps, strict=True)
        if not sign.since <= step <= sign.by
    ]
    return Sight(run, steps, (*late, *(why for why, holds in case.never.items() if holds(run))))


def _line(sight: Sight) -> str:
    run = sight.run
    found = ", ".join(str(step or "never") for step in sight.steps)
    wrong = f" -- {'; '.join(sight.wrong)}" if sight.wrong else ""
    return f"{run.name} seed {run.seed}: seen at {found}; {len(run.rows)} steps, {run.cpu:.2f} CPU s each{wrong}"


def _verdict(done: Mapping[str, Sequence[Sight]]) -> int:
    print("fault | appeared | first seen | wanted")
    failed = []
    for name, sights in done.items():
        count = sum(not sight.wrong for sight in sights)
        if count < ENOUGH * len(sights):
            failed.append(name)
        head = f"{name} | {count} of {len(sights)}"
        for place, sign in enumerate(CASES[name].signs):
            print(f"{head} | {_range([s.steps[place] for s in sights])} | {sign.words}, by step {sign.by}")
            head = " | "
        for why in CASES[name].never:
            print(f" | {sum(why in s.wrong for s in sights)} times | never {why}")
    print(f"the gate does NOT hold: {', '.join(failed)}" if failed else "the gate holds")
    return 1 if failed else 0


def _range(steps: Sequence[int]) -> str:
    found = [step for step in steps if step]
    never = f", {len(steps) - len(found)} never" if len(found) < len(steps) else ""
    return f"{min(found)}..{max(found)}{never}" if found else "never"


if __name__ == "__main__":
    sys.exit(main())
