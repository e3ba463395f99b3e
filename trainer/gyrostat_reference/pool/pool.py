"""RolloutPool: hands sessions to workers, listens, replaces the lost; the trainer calls it once a step.

A roll-out ends with all of its sessions or with an error; it never hangs. The worst case is bounded: each worker is
heard, ready or at its next round within a deadline, or replaced; replacements and hand-overs have budgets.
"""

import math
import time
from collections.abc import Mapping, Sequence
from multiprocessing.connection import wait
from types import TracebackType
from typing import NamedTuple

import torch
from torch import Tensor

from gyrostat_reference.model import Shape
from gyrostat_reference.pool.docket import Docket
from gyrostat_reference.pool.errors import WorkersLost
from gyrostat_reference.pool.process import Hand, WorkerProcess
from gyrostat_reference.pool.session import Session, begin, decode_round
from gyrostat_reference.pool.settings import Settings
from gyrostat_reference.pool.weights import PolicyFolder
from gyrostat_reference.pool.wire import Message, WireError
from gyrostat_reference.rollout import PolicyDestroyed

_CLOSING = 1.0  # seconds that all workers together get to go by themselves


class PoolRollouts(NamedTuple):
    """P prompts, G completions each: ``sequences`` (P*G, LENGTH), ``log_probs`` (P*G, ANSWER_LENGTH) as drawn.

    ``rewards`` (P*G,); ``versions`` int64 (P,), the smallest policy version that any round of the session used.
    """

    sequences: Tensor
    log_probs: Tensor
    rewards: Tensor
    versions: Tensor


class RolloutPool:
    """``workers`` child processes; they start at once and are waited for by the first roll-out.

    Belongs to the thread that makes it: the workers end with that thread. Close it, or use it in a with statement.
    """

    def __init__(self, workers: int, shape: Shape | None = None, settings: Settings | None = None) -> None:
        if workers < 1:
            raise ValueError(f"a pool has at least one worker, not {workers}")
        self._shape, self.settings = shape or Shape(), settings or Settings()
        self._policies = PolicyFolder(self.settings.folder, self.settings.faults.frozen_version)
        self._workers: list[WorkerProcess] = []
        self._restarts = self._restarts_before = self._moved = self._retries = 0
        self._last: dict[str, float] = {}
        try:
            for place in range(workers):
                self._workers.append(self._start(place, 1))
        except BaseException:
            self.close()
            raise

    @property
    def pids(self) -> tuple[int, ...]:
        """The workers' process ids, by their place in the pool."""
        return tuple(worker.pid for worker in self._workers)

    def publish(self, version: int, weights: Mapping[str, Tensor]) -> None:
        """Make ``weights``, a model's ``state_dict``, the next roll-out's policy; raises OSError on a full disk."""
        self._policies.publish(version, weights)

    def roll_out(
        self, prompts: Tensor, items: Sequence[int], seeds: Sequence[int], temperature: float = 1.0
    ) -> PoolRollouts:
        """Complete ``prompts`` (P, PROMPT_LENGTH); ``items`` are their ids, ``seeds`` (63 bits) one generator each.

        The same policy and seeds give the same completions, whatever happens to workers. Raises SessionLost,
        WorkersLost, PolicyDestroyed; ValueError for arguments that cannot be, and before the first ``publish``.
        """
        if not self._workers:
            raise ValueError("the pool is closed")
        newest = self._policies.newest.version
        docket = Docket(self._sessions(prompts, items, seeds, temperature), self.settings.handovers)
        self._begin()
        try:
            while not docket.done:
                self._replace(docket)
                self._hand_out(docket)
                self._listen(docket)
        finally:
            self._moved += docket.moved
            self._retries += docket.retries
        found = _gather(docket.sessions)
        self._last = {
            "session_round_p99": _quantile(docket.seconds, 0.99),
            "policy_lag": float(newest - int(found.versions.min())),
        }
        return found

    def measures(self) -> dict[str, float]:
        """What the trainer may tell, by name.

        ``rollout_workers``: alive and ready. Counted since the pool was made: ``rollout_worker_restarts``;
        ``sessions_moved``, to another worker; ``session_retries``, every hand-over. Of the last roll-out, absent
        before it: ``session_round_p99`` in seconds; ``policy_lag``, the version published less the smallest used.
        """
        return {
            "rollout_workers": float(sum(worker.ready and not worker.lost for worker in self._workers)),
            "rollout_worker_restarts": float(self._restarts),
            "sessions_moved": float(self._moved),
            "session_retries": float(self._retries),
            **self._last,
        }

    def close(self) -> None:
        """End the workers, by SIGKILL where they are starting or do not go within a second; delete the policies."""
        for worker in self._workers:
            worker.leave()
        until = time.monotonic() + _CLOSING
        for worker in self._workers:
            worker.kill(max(0.0, until - time.monotonic()) if worker.ready else 0.0)
        self._workers.clear()
        self._policies.close()

    def __enter__(self) -> "RolloutPool":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- the parts of a roll-out -------------------------------------------------------------------------

    def _sessions(
        self, prompts: Tensor, items: Sequence[int], seeds: Sequence[int], temperature: float
    ) -> list[Session]:
        if not len(prompts) == len(items) == len(seeds) > 0:
            raise ValueError(f"{len(prompts)} prompts, {len(items)} items and {len(seeds)} seeds: give one of each")
        if not (math.isfinite(temperature) and temperature > 0):
            raise ValueError(f"the temperature is a number above 0, not {temperature}")
        if not all(0 <= seed < 1 << 63 for seed in seeds):
            raise ValueError("a seed has 63 bits: from 0 to 2**63 - 1")
        given = zip(prompts, items, seeds, strict=True)
        return [begin(prompt, self.settings.group, item, seed, temperature) for prompt, item, seed in given]

    def _begin(self) -> None:
        """Forget what a roll-out that failed left in hand; silence counts from now, for nobody listened before."""
        self._restarts_before = self._restarts
        now = time.monotonic()
        for worker in self._workers:
            worker.heard = now
            if worker.hand is not None:
                worker.hand = Hand(None, now)

    def _replace(self, docket: Docket) -> None:
        """Start a new worker for each lost one; what that had in hand goes back."""
        for worker in self._workers:
            if not worker.lost:
                continue
            worker.kill()
            hand, worker.hand = worker.hand, None
            if hand is not None and hand.number is not None:
                docket.give_back(hand.number, worker.epitaph())
            if self._restarts - self._restarts_before >= self.settings.restarts:
                raise WorkersLost(
                    f"{self.settings.restarts} rollout workers were replaced in one roll-out, which is all that may be;"
                    f" the last one, {worker.epitaph()}"
                )
            self._restarts += 1
            self._workers[worker.place] = self._start(worker.place, worker.incarnation + 1)

    def _start(self, place: int, incarnation: int) -> WorkerProcess:
        return WorkerProcess(place, incarnation, self._shape, self.settings, self._policies.path)

    def _hand_out(self, docket: Docket) -> None:
        """Give each idle worker a session and the policy to draw it with."""
        for worker in self._workers:
            if worker.lost or not worker.ready or worker.hand is not None:
                continue
            number = docket.take(worker.pid)
            if number is None:
                return
            policy = self._policies.at_most(self.settings.faults.newest_for(worker.place))
            worker.hand = Hand(number, time.monotonic())
            worker.send({"policy": str(policy.path), "session": docket.sessions[number].encode()})

    def _listen(self, docket: Docket) -> None:
        """Take what workers say, then judge them.

        By the time before they were heard: a trainer that was itself stopped for a minute would else find them all
        silent.
        """
        now = time.monotonic()
        lines: dict[object, WorkerProcess] = {w.fileno(): w for w in self._workers if not w.lost}
        for speaking in wait([w.fileno() for w in lines.values()], self.settings.heartbeat):
            worker = lines[speaking]
            for message in worker.read():
                self._take(worker, message, docket)
        for worker in lines.values():
            if not worker.lost:
                worker.judge(now)

    def _take(self, worker: WorkerProcess, message: Message, docket: Docket) -> None:
        kind = message.get("kind")
        if kind == "ready":
            worker.ready = True
        elif kind == "round":
            self._take_round(worker, message, docket)
        elif kind in ("failed", "destroyed"):
            hand, worker.hand = worker.hand, None
            if hand is None or hand.number is None:
                return
            if kind == "destroyed":
                raise PolicyDestroyed(f"policy destroyed: {message.get('why')}")
            docket.give_back(hand.number, f"{worker.name}: {message.get('why')}")

    def _take_round(self, worker: WorkerProcess, message: Message, docket: Docket) -> None:
        if worker.hand is None:
            worker.lost = "it sent a round that nobody asked for"
            return
        try:
            done = decode_round(message["round"], self.settings.group)
        except (WireError, KeyError) as error:
            worker.lost = str(error)
            return
        number, since = worker.hand
        if number is not None:
            docket.add(number, done, worker.heard - since)
        worker.hand = Hand(number, worker.heard) if done.rewards is None else None


def _gather(sessions: Sequence[Session]) -> PoolRollouts:
    rewards = [session.rewards for session in sessions if session.rewards is not None]
    versions = [min(done.version for done in session.rounds) for session in sessions]
    return PoolRollouts(
        torch.cat([session.sequences for session in sessions]),
        torch.cat([session.log_probs for session in sessions]),
        torch.cat(rewards),
        torch.tensor(versions),
    )


def _quantile(values: Sequence[float], share: float) -> float:
    """The nearest-rank quantile of ``values``, of which there is at least one."""
    return sorted(values)[math.ceil(share * len(values)) - 1]
