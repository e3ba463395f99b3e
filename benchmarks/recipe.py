"""The recipe of the reference trainer, and its gate: clean runs learn, and luck does not decide how well.

    python benchmarks/recipe.py            10 seeds and a control twin of each, about 10 CPU minutes
    python benchmarks/recipe.py --quick    2 and 2

A twin is the same run with its random generator re-seeded at step 20. The gate: every seed ends with a reward of at
least 0.95 (mean of the last ten steps), its running entropy never three steps of five under half the floor, where
something must be done, its experts balanced (rho_eff above 0.6, less than a tenth dead); the twins' last rewards have
a standard deviation of at most 0.03. Exit status 1 where it does not hold.
"""

import argparse
import os
import statistics
import sys

from reference_campaign import Job, Run, runs

from gyrostat_reference.settings import RECIPE, STEPS, Settings

REWARD, SPREAD = 0.95, 0.03
BALANCE, DEAD = 0.6, 0.1


def main() -> int:
    """Print the recipe, the runs as they end, and the verdict."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="2 seeds")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="runs at once")
    arguments = parser.parse_args()
    seeds = range(2 if arguments.quick else arguments.seeds)
    print(_recipe(), flush=True)
    jobs = [Job("clean", Settings(seed=seed)) for seed in seeds]
    jobs += [Job("twin", Settings(seed=seed, faults=("reseed@20",))) for seed in seeds]
    done: list[Run] = []
    for run in runs(jobs, arguments.jobs):
        done.append(run)
        print(f"[{len(done)}/{len(jobs)}] {_line(run)}", flush=True)
    return _verdict(done)


def failures(run: Run) -> list[str]:
    """What of the gate a clean run does not hold; nothing where it holds."""
    low = [row["entropy_average"] < row["entropy_floor"] / 2 for row in run.rows]
    held = {
        f"it died: {run.died}": not run.died,
        f"reward {run.mean('reward'):.3f} is under {REWARD}": run.mean("reward") >= REWARD,
        "entropy was three steps of five under half the floor": not any(
            sum(low[i : i + 5]) >= 3 for i in range(len(low) - 4)
        ),
        f"rho_eff {run.effective():.2f} is not above {BALANCE}": run.effective() > BALANCE,
        f"{run.dead():.0%} of experts are dead": run.dead() < DEAD,
    }
    return [what for what, good in held.items() if not good]


def _recipe() -> str:
    settings = Settings()
    knobs = {name: value for name, value in settings.knobs._asdict().items() if value}
    shape = ", ".join(f"{name} {value}" for name, value in settings.shape._asdict().items())
    return "\n".join((
        f"{STEPS} steps of 16 prompts x 8 completions in 2 minibatches, AdamW (0.9, 0.95), mode {settings.mode}",
        f"learning rate {RECIPE.rate:g}: warm-up over {RECIPE.warm_up} steps, level to {RECIPE.decay_from}, "
        f"down to a tenth at {RECIPE.horizon}",
        f"model: {shape}",
        f"knobs: {', '.join(f'{name} {value:g}' for name, value in knobs.items())}",
    ))  # fmt: skip


def _line(run: Run) -> str:
    wrong = failures(run)
    lowest = min(row["entropy_average"] for row in run.rows)
    under = sum(row["entropy_average"] < row["entropy_floor"] for row in run.rows)
    return (
        f"{run.name:5s} seed {run.seed}: reward {run.mean('reward'):.3f}, "
        f"entropy {run.rows[-1]['entropy_average']:.2f} "
        f"(lowest {lowest:.2f}, {under} steps under the floor), "
        f"rho_eff {run.effective():.2f}, dead {run.dead():.2f}, {run.cpu:.2f} CPU s a step"
        f"{'' if not wrong else ' -- ' + '; '.join(wrong)}"
    )


def _verdict(done: list[Run]) -> int:
    clean = [run for run in done if run.name == "clean"]
    rewards = [run.mean("reward") for run in clean]
    twins = [run.mean("reward") for run in done if run.name == "twin"]
    bad = sum(bool(failures(run)) for run in clean)
    spread = statistics.pstdev(twins)
    print(f"clean: lowest last reward {min(rewards):.3f} of {len(clean)} seeds (at least {REWARD}); {bad} not healthy")
    print(f"twins: standard deviation of the last reward {spread:.3f} (at most {SPREAD})")
    held = not bad and spread <= SPREAD
    print("the gate holds" if held else "the gate does NOT hold")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
