"""Recorded runs: the reference trainer, in a process each, and what its faults are called and when they are due.

A fault is plain where its own numbers first say so three rows running (a value that is not finite: at once), and due as
many rows later as in ``kinds``. What is there from the first step on, and shows only as the run goes, has no onset.
"""

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from statistics import median
from typing import Any, NamedTuple

import torch
from corpusline import line, told
from kinds import KINDS, deadline, reason
from reference_campaign import Listener
from split import SPLITS

from gyrostat import Control
from gyrostat.wire import ExpertLoad
from gyrostat_reference.data import PromptData
from gyrostat_reference.rollout import PolicyDestroyed
from gyrostat_reference.settings import STEPS, Settings
from gyrostat_reference.trainer import Trainer
from gyrostat_rules import experts

CLEAN = "clean"
SIGNALS = (
    "loss", "grad_norm", "entropy", "kl", "kl_k1", "reward", "reward_std", "zero_advantage_fraction", "unique_fraction",
    "clip_fraction", "mismatch_kl", "response_length", "learning_rate", "step_time", experts.RHO_EFF,
    experts.DEAD_SHARE,
)  # fmt: skip
DIGITS = 5
_FIRST_SEED = 4000  # of the first split; far from those that recipe and faults were made with
_STRUCK = 20
_TOLD = (experts.RHO_EFF, experts.DEAD_SHARE)

Row = Mapping[str, float]


class Known(NamedTuple):
    """A fault of the reference trainer: the kind it is, for how many ``steps`` it is recorded, and how it shows.

    ``onset``: the step it begins at, None where nobody can place it.
    """

    kind: str
    steps: int
    onset: int | None
    shows: Callable[[Sequence[Row], int], bool]
    at_once: bool = False


class Job(NamedTuple):
    """A run to be recorded; ``name`` is a fault's, or CLEAN."""

    name: str
    seed: int
    steps: int
    split: str

    @property
    def group(self) -> str:
        """The name of the run in the corpus."""
        return f"reference-{self.name}-{self.seed}"


def under(name: str, limit: float) -> Callable[[Sequence[Row], int], bool]:
    """A value is below a limit."""
    return lambda rows, place: rows[place][name] < limit


def lost(rows: Sequence[Row], place: int) -> bool:
    """The reward is below a third of its usual before the fault."""
    usual = median(row["reward"] for row in rows[: _STRUCK - 1])
    return rows[place]["reward"] < KINDS["reward_collapse"].limit * usual


def unfinite(rows: Sequence[Row], place: int) -> bool:
    """A value that is told is not finite."""
    return any(not math.isfinite(rows[place][name]) for name in SIGNALS if name in rows[place])


def apart(rows: Sequence[Row], place: int) -> bool:
    """Rollouts and training are apart."""
    return rows[place]["mismatch_kl"] > KINDS["train_infer_mismatch"].limit


_UNEVEN = under(experts.RHO_EFF, KINDS["expert_imbalance"].limit)
RECORDED: Mapping[str, Known] = {
    "nan_data": Known("nan_inf", 30, _STRUCK, unfinite, at_once=True),
    "nan_eps": Known("nan_inf", 30, _STRUCK, unfinite, at_once=True),
    "lr_bomb": Known("reward_collapse", 45, _STRUCK, lost),
    "divergence": Known("reward_collapse", 60, _STRUCK, lost),
    "entropy_collapse": Known("entropy_collapse", 110, None, under("entropy", 0.15)),
    "expert_imbalance": Known("expert_imbalance", 40, 1, _UNEVEN),
    "router_lr": Known("expert_imbalance", 40, 1, _UNEVEN),
    "stale_rollouts": Known("train_infer_mismatch", 60, _STRUCK, apart),
}


class Recorder(Listener):
    """A Listener that reduces each step's expert counts to the series that the sidecar makes of them."""

    def __init__(self) -> None:
        super().__init__()
        self._loads: list[ExpertLoad | None] = []

    def record(self, step: int, expert_load: object = None, **values: object) -> None:
        """Keep a step's values and its balance."""
        super().record(step, expert_load, **values)
        assert isinstance(expert_load, torch.Tensor)
        layers, loops, count = expert_load.shape
        load = ExpertLoad(layers, loops, count, tuple(expert_load.flatten().tolist()))
        made = experts.series_of(load, self._loads)
        self.rows[-1] |= {name: made[name] for name in _TOLD if name in made}
        self._loads = [*self._loads[-4:], load]


def jobs(name: str, split: str, healthy_steps: int, seeds: int) -> list[Job]:
    """The runs of a name: so many seeds of a fault, or as many clean ones as make so many steps."""
    first = _FIRST_SEED + 1000 * SPLITS.index(split)
    if name != CLEAN:
        return [Job(name, first + seed, RECORDED[name].steps, split) for seed in range(seeds)]
    steps = min(STEPS, healthy_steps)
    return [Job(name, first + seed, steps, split) for seed in range(-(-healthy_steps // steps))]


def recorded_at_once(wanted: Sequence[Job], at_once: int) -> Iterator[tuple[Job, list[str]]]:
    """Record all of them, ``at_once`` processes at a time, in the order in which they end."""
    with contextlib.ExitStack() as stack:
        workers = stack.enter_context(ProcessPoolExecutor(at_once))
        futures = {workers.submit(recorded, job): job for job in wanted}
        try:
            for done in as_completed(futures):
                yield futures[done], done.result()
        finally:
            workers.shutdown(wait=False, cancel_futures=True)


def recorded(job: Job) -> list[str]:
    """Make a run in this process; its corpus lines, one a signal."""
    torch.set_num_threads(1)
    faults = () if job.name == CLEAN else (job.name,)
    poison = PromptData(seed=job.seed).first_item_of_step(_STRUCK) if job.name == "nan_data" else None
    recorder = Recorder()
    settings = Settings(steps=job.steps, seed=job.seed, faults=faults, poison_item=poison)
    with contextlib.suppress(PolicyDestroyed):
        Trainer(settings, recorder, say=lambda text: None).run(Control(recorder))
    return lines(job, recorder.rows)


def lines(job: Job, rows: Sequence[Row]) -> list[str]:
    """The corpus lines of a run that told ``rows``, from step 1 on; none where its fault never shows."""
    known = RECORDED.get(job.name)
    plain = _plain(known, rows) if known else None
    if known and plain is None:
        return []
    shared, out, steps = _facts(job, len(rows), plain or 0), [], range(1, len(rows) + 1)
    for place, signal in enumerate(SIGNALS):
        if series := told(steps, [row.get(signal) for row in rows], DIGITS):
            out.append(line({"id": f"{job.group}-{place:02d}", "signal": signal, "series": series, **shared}))
    return out


def _facts(job: Job, steps: int, plain: int) -> dict[str, Any]:
    known = RECORDED.get(job.name)
    return {
        "source": "gyrostat_reference",
        "trainer": "gyrostat",
        "kind": known.kind if known else "reward_collapse",
        "healthy": known is None,
        "onset_step": known.onset if known else None,
        "must_fire_by_step": min(steps, deadline(known.kind, plain)) if known else None,
        "right_action": KINDS[known.kind].action if known else "nothing",
        "note": f"{job.name}: {reason(known.kind)}" if known else "the recipe, and nothing wrong with it",
        "group": job.group,
        "step_basis": "step",
        "evidence": "series",
        "replay": True,
        "family": f"reference {job.name}",
        "split": job.split,
    }


def _plain(known: Known, rows: Sequence[Row]) -> int | None:
    """The step at which the fault is plain, None where it never is."""
    since, needed = (known.onset or 1) - 1, 1 if known.at_once else 3
    places = range(since, len(rows) - needed + 1)
    return next((p + 1 for p in places if all(known.shows(rows, p + more) for more in range(needed))), None)
