"""Verdicts: every run of a corpus judged, in this process or in several; the same verdicts in the same order."""

import multiprocessing
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial

from gyrostat_agent.backtest.corpus import RunLines, cases
from gyrostat_agent.backtest.score import Verdict, judge
from gyrostat_agent.errors import AgentError

_AT_ONCE = 8  # runs handed to a process in one go


def verdicts(runs: Sequence[RunLines], text: str, digest: str, jobs: int = 1) -> Iterator[Verdict]:
    """Judge each run by the pack ``text``; with ``jobs`` processes beside each other."""
    if jobs <= 1 or len(runs) <= 1:
        yield from (one(run, text, digest) for run in runs)
        return
    # A fresh interpreter each: a fork of a process with threads may hang.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(min(jobs, len(runs)), context, _ignore_interrupts)
    try:
        yield from pool.map(partial(one, text=text, digest=digest), runs, chunksize=_AT_ONCE)
    except BrokenProcessPool:
        raise AgentError("a process of the backtest was killed, perhaps for its memory; give fewer --jobs") from None
    finally:
        pool.shutdown(cancel_futures=True)


def one(run: RunLines, text: str, digest: str) -> Verdict:
    """Read and judge one run."""
    return judge(cases(run), text, digest)


def _ignore_interrupts() -> None:
    """Ctrl-C reaches all processes of a terminal; the one that began the others ends them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
