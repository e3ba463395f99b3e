"""The demonstration as the campaign plays it: without the untreated run, which its table does not use.

    python benchmarks/scenario_player.py --scenario divergence --seeds 1 ...      as gyrostat demo

It takes more than a quarter of the time of all, and shows what is known. Its reward is null in the rows.
"""

import sys

from rich.console import Console

from gyrostat_agent.cli import main
from gyrostat_agent.demo import runner
from gyrostat_agent.demo.course import Course
from gyrostat_agent.demo.scenarios import CLEAN, UNTREATED, Layout
from gyrostat_agent.demo.trio import Result

_play = runner._run_baselines


def _clean_alone(
    console: Console, part: runner.Part, layouts: dict[str, Layout], steps: int, names: list[str]
) -> dict[str, Result]:
    made = _play(console, part, layouts, steps, [name for name in names if name == CLEAN])
    return {**made, UNTREATED: Result(Course(), "it was not run", 0.0)}


if __name__ == "__main__":
    runner._run_baselines = _clean_alone
    sys.argv.insert(1, "demo")
    sys.exit(main())
