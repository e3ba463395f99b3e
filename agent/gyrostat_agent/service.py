"""The agent as a process: sleeps between passes, survives a journal that fails, ends in order on a signal."""

import gc
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from gyrostat.wire import RunDirectory
from gyrostat.wire.fields import clean
from gyrostat_agent import statusfile
from gyrostat_agent.access import wordserver
from gyrostat_agent.access.wordserver import WordServer
from gyrostat_agent.alertpush.history import endings
from gyrostat_agent.alertpush.push import Push
from gyrostat_agent.checkpoints import CheckpointSource, ChildVerifier
from gyrostat_agent.cluster.joining import joined
from gyrostat_agent.errors import AgentError
from gyrostat_agent.journal import JournalError
from gyrostat_agent.loop import Agent
from gyrostat_agent.rundir import Lock
from gyrostat_agent.server import Server
from gyrostat_agent.settings import Settings
from gyrostat_agent.sources.surroundings import Surroundings
from gyrostat_agent.sources.wakeup import WakeUp
from gyrostat_agent.takenport import served
from gyrostat_exporters.alertmanager import Links
from gyrostat_exporters.cases import Endings, cases
from gyrostat_exporters.metrics import Latest
from gyrostat_exporters.view import Tally, View, nothing, view
from gyrostat_rules.detectors.stall import Stall, is_silent
from gyrostat_rules.packfile import parse

if TYPE_CHECKING:
    from gyrostat_agent.kubernetes.process import JobProcess
    from gyrostat_agent.otlppush.push import OtlpPush

_STUCK_SECONDS = 30.0
_LAST_PASSES = 100
_COLLECT_SECONDS = 60.0
_SHOW_SECONDS = 0.5
_BACKOFF, _MOST_BACKOFF = 1.0, 30.0


class Service:
    """Runs an agent until it is told to end. ``say`` gets one line for what an operator should know.

    ``named``: somebody chose ``listen``, so no other port will do.
    """

    def __init__(
        self, run: RunDirectory, settings: Settings, listen: str, say: Callable[[str], None], *, named: bool = False
    ) -> None:  # fmt: skip
        self._run, self._settings, self._say = run, settings, say
        self._lock = Lock(run)
        self._wake = WakeUp([run.records, os.path.join(run.agent, "commands")])
        self._verifier = ChildVerifier()
        self._checkpoints = self._checkpoint_source()
        self._around = Surroundings(
            self._wake.ring, gpu=settings.gpu, host=settings.host, scrapes=settings.scrapes,
            receive=settings.receive, token_file=settings.token_file, checkpoints=settings.checkpoints,
        )  # fmt: skip
        self._latest, self._tally = Latest(), Tally()
        rules = parse(settings.pack_text).rules
        self._rules, self._endings = {r.alert: r for r in rules}, Endings()
        self._severities = {r.alert: r.severity for r in rules}
        self._stall = next((r.params for r in rules if r.detector == "stall"), Stall())
        self._passed = time.monotonic()
        self._shown = self._collected = 0.0
        self._ending = False
        self._trouble = ""
        self._server = self._page(listen, named) if listen else None
        self._words = self._word_server(settings.control) if settings.control else None
        self._push = self._pushing()
        self._otlp = _exporting(run, settings, self._latest, say) if settings.otlp else None
        self._job = _job(run, settings, say) if settings.kubernetes else None
        self._member = joined(settings, self._wake.ring) if settings.cluster else None
        if self._wake.polling:
            say(self._wake.polling)

    def run(self) -> int:
        """Pass after pass; returns the exit status."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._end)
        # Held back since the start, so that being told to end is never simply dying.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM,))
        backoff, looked = _BACKOFF, False
        if self._member is not None:
            self._member.start(lambda: not self._stuck(), self._wake.ring)
        while not self._ending or not looked:
            looked = True
            try:
                agent = Agent(
                    self._run, self._settings, self._checkpoints, time.time, self._around, self._job, self._member
                )
            except (AgentError, JournalError) as error:
                backoff = self._wait_out(error, backoff)
                continue
            self._tell_start(agent)
            try:
                self._endings = endings(agent.journal, time.time()) if self._push else self._endings
                self._passes(agent)
                backoff = _BACKOFF
                agent.close()
            except (AgentError, JournalError) as error:
                agent.abandon()
                self._checkpoints.close()  # its verdicts may have been in the turn that was not written: ask anew
                self._checkpoints = self._checkpoint_source()
                backoff = self._wait_out(error, backoff)
        return self._leave()

    def _checkpoint_source(self) -> CheckpointSource:
        pinning = self._settings.pins > 0 and self._settings.mode != "observe"
        source = CheckpointSource(
            self._verifier, wake=self._wake.ring, pinning=pinning, pin_bytes=self._settings.pin_bytes
        )
        if self._settings.checkpoints and not self._settings.cluster:  # until a trainer names its own
            source.set_root(self._settings.checkpoints[0])
        return source

    def _page(self, listen: str, named: bool) -> Server:
        return served(
            lambda at: Server(at, self._latest, self._stuck), listen, self._say, option="--listen", named=named
        )

    def _word_server(self, listen: str) -> WordServer:
        token, names = self._settings.control_token, self._settings.control_names
        return served(
            lambda at: WordServer(at, self._run, self._say, token_file=token, names=names),
            listen, self._say, option="--control", named=listen != wordserver.DEFAULT,
        )  # fmt: skip

    def _pushing(self) -> Push | None:
        chosen = self._settings
        if not chosen.alertmanagers:
            return None
        page = chosen.external_url or (f"http://{self._server.address}" if self._server else "")
        links = Links(page, chosen.runbook_base)
        return Push(chosen.alertmanagers, self._latest, links, self._say, token_file=chosen.alertmanager_token)

    def _passes(self, agent: Agent) -> None:
        gc.collect()
        gc.freeze()  # what lives now lives on
        gc.disable()  # a collection must not cost a pass its milliseconds: it is done between two
        self._trouble = ""
        while not self._ending:
            items = agent.once()
            self._passed = time.monotonic()
            self._show(agent, items)
            fd = self._verifier.fileno()
            self._wake.also({fd} if fd is not None else set())
            self._collect()
            if not items:
                self._wake.wait(agent.seconds_to_tick())
        self._look_once_more(agent)

    def _collect(self) -> None:
        """Collect garbage now and then, behind a pass and not in the middle of one."""
        now = time.monotonic()
        if now - self._collected > _COLLECT_SECONDS:
            self._collected = now
            gc.collect()

    def _look_once_more(self, agent: Agent) -> None:
        """What was written before we were told to end: a death, a goodbye. Silence must not read as healthy."""
        for _ in range(_LAST_PASSES):
            news = agent.once()
            self._shown = 0.0
            self._show(agent, news)
            if not news:
                return

    def _show(self, agent: Agent, news: bool) -> None:
        """Publish a view, at most twice a second unless something was decided."""
        self._tally.count(agent.taken, agent.entries)
        urgent = bool(agent.entries)
        for entry in agent.entries:
            if entry.kind in ("incident", "action", "proposal", "source", "command"):
                self._say(f"step {entry.step}  {entry.kind} {entry.subject}: {entry.text}")
        if self._words is not None:
            self._words.heard(agent.entries)
        self._endings.hear(agent.entries)
        if self._job is not None and not agent.engine.state.standing.follows:
            self._job.tell(agent.entries)
        agent.entries, agent.taken = [], []
        now = time.monotonic()
        if not urgent and now - self._shown < _SHOW_SECONDS:
            return
        self._shown = now
        self._tally.missing, self._tally.damaged, self._tally.turns = agent.missing, agent.damaged, agent.turns
        self._tally.requests = self._words.counts() if self._words else self._tally.requests
        shown = view(agent.engine.state, self._tally, self._severities, self._blind(agent))
        elsewhere = self._member is not None and self._member.is_told_for
        if self._push is not None:
            told = () if elsewhere else cases(agent.engine.state, self._rules, self._endings, time.time())
            shown = shown._replace(cases=told, pushed=self._push.counts())
        if self._member is not None:
            shown = shown._replace(fellows=self._member.shown(agent.engine.state))
        if self._otlp is not None:
            shown = shown._replace(exported=self._otlp.counts())
        self._publish(shown._replace(head=agent.custody.heads[-1], journal_bytes=agent.custody.bytes))
        if self._otlp is not None:
            self._otlp.look(agent.engine.state, news=urgent, elsewhere=elsewhere)

    def _publish(self, shown: View) -> None:
        self._latest.view = shown
        if self._push is not None:
            self._push.look()
        statusfile.write(self._run, shown, self._server.address if self._server else "")

    def _blind(self, agent: Agent) -> list[str]:
        """What cannot be seen now: silence must never read as healthy."""
        state = agent.engine.state
        distrust = state.settings.distrust and f"observe only: {state.settings.distrust}"
        apart = self._member.fault(state) if self._member is not None else ""
        found = [fault for fault in (self._trouble, distrust, self._checkpoints.fault, apart) if fault]
        if not any(p.role not in ("supervisor", "gpu", "host") for p in state.processes.values()):
            found.append("no trainer has spoken yet")
        now = time.time()
        for process in state.processes.values():
            if is_silent(self._stall, process, now):
                found.append(f"{process.role} {process.rank} has been silent for {now - process.last_at:.0f} s")
        return found

    def _tell_start(self, agent: Agent) -> None:
        where = f", http://{self._server.address}" if self._server else ""
        where += f", posts to http://{self._around.address}" if self._around.address else ""
        where += f", words to http://{self._words.address}" if self._words else ""
        where += f", node {self._member.node} of a cluster at {self._member.address}" if self._member else ""
        distrust = agent.engine.state.settings.distrust
        mode = f"observe only: {distrust}" if distrust else f"mode {self._settings.mode}"
        self._say(f"watching {self._run.path}, run {agent.engine.state.run}, {mode}{where}")

    def _wait_out(self, error: Exception, backoff: float) -> float:
        """Say what is wrong, once a change, and sleep; the next pass begins again from the journal."""
        if str(error) != self._trouble:
            self._say(f"cannot go on, trying again: {error}")
        self._trouble = str(error)
        last = self._latest.view or nothing(self._settings.run, self._settings.mode, "")
        self._publish(last._replace(blind=(self._trouble,)))
        self._passed = time.monotonic()
        self._wake.wait(backoff)
        return min(_MOST_BACKOFF, 2 * backoff)

    def _stuck(self) -> str:
        silent = time.monotonic() - self._passed
        return f"no pass for {silent:.0f} s" if silent > _STUCK_SECONDS + self._settings.tick_seconds else ""

    def _end(self, number: int, frame: object) -> None:
        self._ending = True
        self._wake.ring()

    def _leave(self) -> int:
        if self._member is not None:
            self._member.close()
        if self._job is not None:
            self._job.close()
        if self._push is not None:
            self._push.close()
        if self._otlp is not None:
            self._otlp.close()
        if self._server is not None:
            self._server.close()
        if self._words is not None:
            self._words.close()
        self._around.close()
        self._checkpoints.close()
        self._verifier.close()
        self._wake.close()
        self._lock.release()
        return 0


def _exporting(run: RunDirectory, chosen: Settings, latest: Latest, say: Callable[[str], None]) -> "OtlpPush":
    """Imported where it is asked for: OpenTelemetry is an extra."""
    from gyrostat_agent.otlppush.push import OtlpPush

    return OtlpPush(chosen.otlp, run, latest, say, headers_file=chosen.otlp_headers, insecure=chosen.otlp_insecure)


def _job(run: RunDirectory, settings: Settings, say: Callable[[str], None]) -> "JobProcess":
    """The job that owns this pod, as a process of the run; what is missing is said by the loop, and ends nothing."""
    from gyrostat_agent.kubernetes.process import JobProcess, connect

    process = JobProcess(run, settings.run, connect, say)
    process.start()
    return process


def say_on_stderr(line: str) -> None:
    """One line for the operator; what a trainer or a checkpoint says in it commands no terminal."""
    print(f"gyrostat: {clean(line)}", file=sys.stderr, flush=True)
