"""Trio: the three runs of one scenario and seed, clean, untreated and treated, and what each came to."""

import math
from typing import NamedTuple

from gyrostat_agent.demo.course import Course
from gyrostat_agent.demo.scenarios import TREATED, Scenario


class Result(NamedTuple):
    """One run: its course, why it died ('' where it did not), and how long it took in seconds."""

    course: Course
    died: str
    seconds: float

    @property
    def reward(self) -> float | None:
        """Mean reward of the last ten steps; None for a run that died or never had a finite one."""
        reward = self.course.reward
        return None if self.died or not math.isfinite(reward) else reward


class Trio(NamedTuple):
    """The three runs of one scenario and seed, ``steps`` long, the fault at ``fault_step``."""

    scenario: Scenario
    seed: int
    steps: int
    fault_step: int
    results: dict[str, Result]

    @property
    def treated(self) -> Result:
        """The run that has the sidecar beside it."""
        return self.results[TREATED]
