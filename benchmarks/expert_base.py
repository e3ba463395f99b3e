"""What a run from the base without balance comes to when its router losses are on from the first step.

    python benchmarks/expert_base.py --seeds 8

The control that tells how much of the difference in ``expert_imbalance`` is the base's and not the sidecar's: the same
base, seed and steps as the treated run, and no fault in the training itself. Prints the mean reward of the last ten
steps of each seed, then the mean difference to the treated runs in the results file, and its lower 95 % bound.
"""

import argparse
import sys
from pathlib import Path
from statistics import mean

from bootstrap import lower_bound
from reference_campaign import Listener
from scenario_rows import read

from gyrostat import Control
from gyrostat_agent.demo.scenarios import SCENARIOS
from gyrostat_reference.settings import Settings
from gyrostat_reference.trainer import Trainer

RESULTS = Path(__file__).parent / "results" / "scenarios.json"
NAME, LAST = "expert_imbalance", 10


def main() -> int:
    """Train and compare."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=8, help="seeds 0 to one less than this (default 8)")
    given = parser.parse_args()
    treated = {row.seed: row.treated or 0.0 for row in read(RESULTS).rows if row.scenario == NAME}
    differences = []
    for seed in range(given.seeds):
        reward = balanced(seed)
        print(f"seed {seed}: {reward:.4f}, treated {treated.get(seed, float('nan')):.4f}", flush=True)
        differences += [treated[seed] - reward] if seed in treated else []
    if differences:
        print(f"treated less this: {mean(differences):+.4f} over {len(differences)} seeds, lower bound ", end="")
        print(f"{lower_bound(differences):+.4f}")
    return 0


def balanced(seed: int) -> float:
    """The mean reward of the last ten steps, the losses on from the first one at the trainer's own defaults."""
    listener, usual = Listener(), Settings().knobs
    settings = Settings(steps=SCENARIOS[NAME].least_steps, seed=seed, faults=(NAME,))
    trainer = Trainer(settings, listener, say=lambda line: None)
    trainer.knobs = usual
    trainer.run(Control(listener))
    return mean(row["reward"] for row in listener.rows[-LAST:])


if __name__ == "__main__":
    sys.exit(main())
