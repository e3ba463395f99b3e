"""The world: virtual time, one run, its agent, trainer, supervisor and people; deaths as the schedule says.

As much of it is real as can be: agent, journal, files, SDK. Only time is virtual, death is an exception, and
the trainer's step is a line of arithmetic. ``World.run`` plays one schedule and checks what must hold.
"""

import os
import shutil
import tempfile
from collections import Counter

from chaos_clock import Clock, virtual
from chaos_deaths import Blow, Crash, Death, Deaths
from chaos_history import History
from chaos_invariants import Watch
from chaos_packs import pack
from chaos_people import RUN, People, Tamperer
from chaos_scenarios import Scenario, Schedule
from chaos_store import Store, View
from chaos_supervisor import Supervisor
from chaos_trainer import Ended, Trainer

from gyrostat_agent import failpoints
from gyrostat_agent.loop import Agent
from gyrostat_agent.rundir import prepare
from gyrostat_agent.settings import Settings

_TMPFS = "/dev/shm"


class World:
    """One play of one schedule."""

    def __init__(self, schedule: Schedule, covered: "set[tuple[str, str]] | None" = None) -> None:
        self.schedule, self.scenario = schedule, schedule.scenario
        self.clock = Clock()
        self.deaths = Deaths(schedule.blows, self._struck)
        base = _TMPFS if os.access(_TMPFS, os.W_OK) else None
        self.folder = tempfile.mkdtemp(prefix="gyrostat-chaos-", dir=base)
        self.path = os.path.join(self.folder, "run")
        self.root = os.path.join(self.folder, "checkpoints")
        os.makedirs(self.root, mode=0o700)
        self.store = Store(self.root)
        self.served: set[int] = set()
        self.agent: Agent | None = None
        self.trainer: Trainer | None = None
        self.supervisor: Supervisor | None = None
        self.round = 0
        self.stop_rounds = 0
        self._agent_from = self._trainer_from = 0  # rounds from which they may be started again; -1 never
        self._blow: Blow | None = None
        self._sleeping = self._doomed = self._resting = False
        self._asleep: Trainer | None = None
        self._exited = False
        self.over = False  # the run ended in order: nothing starts it again
        self.history = History(
            self.path, self.scenario, self.store, self.deaths, self.clock.time,
            covered if covered is not None else set(), schedule.blows,
        )  # fmt: skip
        self.watch = Watch(self.history)
        self._people = People(self.path, self.scenario, self.history.words.append)
        self._tamperer = Tamperer(self.root)

    # -- one play ---------------------------------------------------------------------------------------

    def run(self) -> "World":
        """Play it to its end; raises AssertionError where something that must hold does not."""
        failpoints.strike = self._strike
        try:
            with virtual(self.clock):
                prepare(self.path)
                for _ in range(self.scenario.rounds):
                    self._play_round(1.0)
                self._rest()
                self.watch.at_end(self.agent, self.trainer)
        finally:
            failpoints.strike = None
            self._release_all()
            shutil.rmtree(self.folder, ignore_errors=True)
        return self

    def _play_round(self, seconds: float) -> None:
        self.round += 1
        self.clock.now += seconds if not self.stop_rounds else 10.0
        self._tamperer.look()
        if self.round == self.scenario.pod_lost_at:
            self._lose_pod()
        if self.round == self.scenario.ledger_at:
            self._tamper()
        self._people.meddle(self.round)
        self._turn_trainer()
        self._turn_supervisor()
        if self.round % self.scenario.agent_every == 0 or self._resting:
            self._turn_agent()
        self._people.answer(self.round, self.agent)
        self.watch.after_round()

    def _rest(self) -> None:
        """The quiet time: nobody is killed any more, who is dead is started, and time goes by in larger steps."""
        self.deaths.armed = False
        self._resting = True
        self._agent_from = max(0, self._agent_from)
        for seconds in (1.0, 1.0, 1.0, 30.0, 40.0, 40.0, 40.0, 40.0):
            self._play_round(seconds)
        for seconds in (30.0,) * 5 + (
            600.0,
        ) * 20:  # a restart may wait for half an hour, and a stopped trainer goes on
            if not self.watch.acting(self.agent):
                break
            self._play_round(seconds)
        for seconds in (600.0,) * 8 if self.scenario.expires else ():  # an hour is how long a person is waited for
            self._play_round(seconds)

    # -- the pieces ---------------------------------------------------------------------------------------

    def _turn_agent(self) -> None:
        if self.agent is None and (self._agent_from < 0 or self.round < self._agent_from):
            return
        try:
            if self.agent is None:
                self._start_agent()
            assert self.agent is not None
            self.agent.once()
            self.watch.after_pass(self.agent)
        except Crash:
            self._agent_died()

    def _start_agent(self) -> None:
        text = pack(self.scenario.pack)
        settings = Settings(
            RUN, text, "digest", self.scenario.mode, self.scenario.approvals, tick_seconds=1.0, snapshot_turns=15
        )
        agent = Agent.__new__(Agent)  # known before it is made: it may die while it is starting
        self.agent = agent
        agent.__init__(prepare(self.path), settings, View(self.store), self.clock.time)  # type: ignore[misc]
        self.watch.after_start(agent)

    def _agent_died(self) -> None:
        agent, self.agent = self.agent, None
        assert agent is not None
        _let_go(agent)
        blow = self._blow
        assert blow is not None
        self._agent_from = -1 if blow.rounds < 0 else self.round + blow.rounds
        if self._asleep is not None:
            self._doomed = blow.both or blow.pod
            return
        if (blow.both or blow.pod) and self.trainer is not None:
            self._trainer_died(-9)
        if blow.pod:
            self._lose_pod()

    def _turn_trainer(self) -> None:
        if self.over or (self.trainer is None and not self._may_start()):
            return
        if self.stop_rounds > 0:
            self.stop_rounds -= 1
            return
        try:
            if self.trainer is None:
                self._start_trainer()
            else:
                self._step(self.trainer)
        except Death:
            blow = self._blow
            assert blow is not None or self._doomed
            self._trainer_died(-9)
            if blow is not None:
                if not self._supervised():
                    self._trainer_from = -1 if blow.rounds < 0 else max(self._trainer_from, self.round + blow.rounds)
                if (blow.both or blow.pod) and self.agent is not None:
                    self._agent_died()
                elif blow.pod:
                    self._lose_pod()
        except Ended as end:
            self._trainer_died(end.status)

    def _may_start(self) -> bool:
        if self._trainer_from < 0:
            return False
        return self.round >= self._trainer_from

    def _start_trainer(self) -> None:
        self.trainer = Trainer(
            self.scenario.plan, self.store, self.path, RUN, self.served, self.deaths.strikes, self.history.note,
            self._sleep, self.clock.time,
        )  # fmt: skip
        self.trainer.begin()

    def _step(self, trainer: Trainer) -> None:
        plan = self.scenario.plan
        number = trainer.step + 1
        if plan.silent_at and number >= plan.silent_at:
            return
        if plan.exit_at == number and not self._exited:
            self._exited = True
            raise Ended(1)
        trainer.turn()
        if plan.stopped_at == trainer.step and not plan.stopped_in_ack and not self.stop_rounds and not self._sleeping:
            self.stop_rounds, self._sleeping = plan.stopped_rounds, True
        if self._doomed:
            self._doomed = False
            raise Death("with the agent")

    def _trainer_died(self, status: int) -> None:
        trainer, self.trainer = self.trainer, None
        if trainer is not None:
            self.watch.trainer_ended(trainer)
            trainer.release()
        self._trainer_from = self.round + self.scenario.relaunch if self.scenario.relaunch else -1
        if status == 0:
            self.over = True
        if self.supervisor is not None and not self.supervisor.gone:
            self._trainer_from = -1  # the supervisor alone starts it again
            self.supervisor.ended(status, False)

    def _supervised(self) -> bool:
        return self.supervisor is not None and not self.supervisor.gone

    def _turn_supervisor(self) -> None:
        if not self.scenario.supervisor:
            return
        if self.supervisor is None:
            self.supervisor = Supervisor(
                self.path, RUN, self.clock.time, self._restart, self._end_trainer, self.history.note,
                holds=self.scenario.mode == "act",
            )  # fmt: skip
        self.supervisor.turn()

    def _restart(self) -> None:
        self._trainer_from = self.round + 1
        self.over = False

    def _end_trainer(self) -> None:
        trainer, self.trainer = self.trainer, None
        if trainer is not None:
            self.watch.trainer_ended(trainer)
            trainer.release()

    def _lose_pod(self) -> None:
        """The pod is gone, and the run directory with it; another one begins on the same checkpoints."""
        self.watch.before_loss()
        if self.trainer is not None:
            self._end_trainer()
        if self.agent is not None:
            agent, self.agent = self.agent, None
            _let_go(agent)
        if self.supervisor is not None:
            self.supervisor.release_descriptors()
            self.supervisor = None
        shutil.rmtree(self.path)
        self.history.pods += 1
        prepare(self.path)
        self._trainer_from, self._agent_from = self.round + 1, max(self._agent_from, self.round + 1)
        self.over = False

    def _tamper(self) -> None:
        """The agent is ended, and something becomes of the ledger before the next one begins."""
        if self.agent is not None:
            agent, self.agent = self.agent, None
            _let_go(agent)
            self._agent_from = max(self._agent_from, self.round)
        if self._tamperer.tamper(self.scenario.ledger):
            self.history.tampered = self.scenario.ledger
            self.history.numbered = any(s.last_directive for s in self.store.saved)

    # -- what befalls it ------------------------------------------------------------------------------------

    def _strike(self, point: str) -> None:
        self.watch.at_point(point, self.agent)
        if self.deaths.strikes(point):
            raise Crash(point)

    def _struck(self, blow: Blow) -> None:
        self._blow = blow
        if self.agent is not None:
            self.watch.cover(self.agent)

    def _sleep(self, rounds: int) -> None:
        """The trainer is stopped in the middle of something: everybody else goes on."""
        if self._sleeping:
            return
        self._sleeping = True
        self._asleep, self.trainer = self.trainer, None
        for _ in range(rounds):
            self.clock.now += 10.0
            self._turn_supervisor()
            self._turn_agent()
        self.trainer, self._asleep = self._asleep, None

    def _release_all(self) -> None:
        if self.agent is not None:
            _let_go(self.agent)
        if self.trainer is not None:
            self.trainer.release()
        if self.supervisor is not None:
            self.supervisor.release_descriptors()


def _let_go(agent: Agent) -> None:
    """Close what a dead agent had open, as the kernel would; it may have died before it had opened anything."""
    for part in ("_records", "journal"):
        if hasattr(agent, part):
            getattr(agent, part).close()


def points_of(scenario: Scenario) -> Counter[str]:
    """How often each point is passed where nobody dies."""
    return World(Schedule(scenario)).run().deaths.passed
