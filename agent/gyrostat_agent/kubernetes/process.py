"""The job as a process of the run: a thread of the agent that says Hello as its supervisor and obeys by the API.

The loop never waits for the API server: it leaves words here (``tell``, ``remember``) and finds answers among the
records, as of any process. So the engine, its guards and budgets know nothing of Kubernetes. What is missing is said
and turns one capability off: without it nothing is offered, and the agent goes on as it does anywhere.
"""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from gyrostat.wire import Directive, RunDirectory
from gyrostat_agent.errors import AgentError
from gyrostat_agent.kubernetes import api, jobledger, pointer
from gyrostat_agent.kubernetes.course import Over, Wait
from gyrostat_agent.kubernetes.events import Events, Regarding, word_of
from gyrostat_agent.kubernetes.finisher import Watch
from gyrostat_agent.kubernetes.orders import Orders
from gyrostat_agent.kubernetes.owner import Owned, Pod, job_of, this_pod
from gyrostat_agent.kubernetes.patience import carry_out, pause_after
from gyrostat_agent.kubernetes.permission import ask_for
from gyrostat_agent.kubernetes.progress import GO_ON, HOLD, RESTART, Order
from gyrostat_agent.kubernetes.refusals import AwayError, ConflictError, ForbiddenError, KubernetesError
from gyrostat_agent.kubernetes.request import (
    Server,
    annotations_of,
    get,
    patch,
    version_of,
)
from gyrostat_agent.kubernetes.turn import Turns
from gyrostat_agent.launch.tee import sdk_speaks
from gyrostat_rules.entries import Entry

_LOOK_SECONDS = 0.5  # between looks at the bell
_CHECK_SECONDS = 30.0  # between looks whether what was missing has come, or is missing now
_LEDGER_SECONDS = 15.0  # between writings of the ledger where nothing is about to be done
_WORDS = {"restart": RESTART, "hold": HOLD, "go_on": GO_ON}
_TOLD = ("incident", "action", "proposal")


class JobProcess:
    """``connect`` gives the server and this pod, or raises what is missing; it is called in the thread, not before."""

    def __init__(
        self, run: RunDirectory, name: str, connect: Callable[[], tuple[Server, Pod]], say: Callable[[str], None],
        ticking: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._run, self._name, self._connect, self._say = run, name, connect, say
        self._ticking = ticking
        self._events = Events()
        self._ledger: tuple[Mapping[str, Any], str] | None = None
        self._ledger_due = False
        self._ledger_at = self._checked = -float("inf")
        self._noted: tuple[jobledger.Noted | None, str] | None = None
        self._faults: dict[str, str] = {}  # by what it is about
        self._quiet_until = -float("inf")
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._live, name="kubernetes", daemon=True)
        self._server: Server | None = None
        self._owned: Owned | None = None

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """Say goodbye; a request under way is not waited for beyond a second."""
        self._end.set()
        self._thread.join(1.0)

    # -- what the loop calls; none of it waits ---------------------------------------------------------

    @property
    def trouble(self) -> str:
        """What cannot be done now, and why, or ''."""
        return "; ".join(dict.fromkeys(fault for fault in self._faults.values() if fault))

    @property
    def is_read(self) -> bool:
        """True once it is known what the job bears."""
        return self._noted is not None

    def tell(self, entries: Iterable[Entry]) -> None:
        """Say at the job what was found and done."""
        for entry in entries:
            if entry.kind in _TOLD:
                self._events.tell(word_of(entry.kind, entry.subject, entry.state, entry.text), time.time())

    def remember(self, facts: Mapping[str, Any], head: str) -> None:
        """The ledger as it was written beside the checkpoints: it goes to the job with what is begun, or soon."""
        self._ledger = (facts, head)
        self._ledger_due = True

    def reconciled(self, found: dict[str, Any] | None, why: str) -> tuple[dict[str, Any] | None, str]:
        """Which ledger to take up: that beside the checkpoints, or what the job bears, where that has been read."""
        noted, doubt = self._noted or (None, "")
        return jobledger.newer(found, why, noted, doubt)

    def late_doubt(self, facts: Mapping[str, Any]) -> str:
        """Why a history taken up before the job could be read is older than what the job bears, or ''."""
        noted, doubt = self._noted or (None, "")
        if noted is not None and noted.counts > jobledger.counts_of(facts):
            return f"the job remembers directive {noted.counts[0] - 1}, which this history does not"
        return doubt

    # -- its own thread --------------------------------------------------------------------------------

    def _live(self) -> None:
        orders = Orders(self._run, self._name)
        failures, pause = 0, 0.0
        while not self._end.wait(pause):
            try:
                self._pass(orders)
                failures, pause = 0, _LOOK_SECONDS
                self._fault("api", "")
            except AwayError as error:
                self._fault("api", f"{error}; nothing can be done to the job until it answers, all else goes on")
                pause = pause_after(failures, error.after)
                failures += 1
            except AgentError as error:
                orders.offer(())
                self._fault("api", f"{error}; the job cannot be acted on, all else goes on")
                self._checked, pause = -float("inf"), _CHECK_SECONDS
            except Exception as error:  # an answer that nobody foresaw must not end the one who obeys
                orders.offer(())
                self._fault("api", f"internal error: {type(error).__name__}: {error}; the job is not acted on")
                self._checked, pause = -float("inf"), _CHECK_SECONDS
        orders.close()

    def _pass(self, orders: Orders) -> None:
        if self._ticking() - self._checked >= _CHECK_SECONDS:
            self._check(orders)
        assert self._server is not None and self._owned is not None
        for directive in orders.new():
            self._obey(orders, directive, self._server, self._owned)
        self._send_events(self._server, self._owned)
        self._send_ledger(self._server, self._owned)

    def _check(self, orders: Orders) -> None:
        """Find the job where it is not known, take up what was begun, and offer what can be done."""
        if self._server is None:
            self._server, self._pod = self._connect()
            self._watch = Watch(self._server, self._pod.namespace, self._ticking)
        if self._owned is None:
            self._owned = job_of(self._server, self._pod)
            self._say(f"this pod is of {self._owned.kind.kind} {self._owned.ref.name}")
        job = self._server.ask(get(self._owned.ref))
        if self._noted is None:
            self._noted = jobledger.read(annotations_of(job))
        lacking = self._lacking(self._server, self._owned)
        orders.offer(() if lacking else ("restart", "hold"))
        self._checked = self._ticking()
        self._fault("job", lacking)
        if not lacking:
            self._go_on(self._server, self._owned)

    def _lacking(self, server: Server, owned: Owned) -> str:
        """Why the job is not to be acted on from here, or ''."""
        if owned.above:
            return f"{owned.kind.kind} {owned.ref.name} is {owned.above}'s, which may undo what is done to it"
        try:
            ask_for(server, owned.kind, owned.ref)
        except ForbiddenError as error:
            return str(error)
        if owned.kind.switch is not None and not self._watch.lives():
            return (
                f"{owned.kind.kind} {owned.ref.name} is not restarted from here: that ends this pod too, and no "
                "finisher is seen that would begin it again (deploy/kustomize/finisher)"
            )
        return ""

    def _go_on(self, server: Server, owned: Owned) -> None:
        """What an earlier life has begun and nobody has finished."""
        move = self._turns(server, owned).take()
        if isinstance(move, Wait):
            self._say(f"{owned.kind.kind} {owned.ref.name}: {move.why}")

    def _obey(self, orders: Orders, directive: Directive, server: Server, owned: Owned) -> None:
        what = _WORDS[directive.procedure]
        avoid = tuple(str(n) for n in directive.arguments.get("avoid", ()))
        order = Order(
            orders.run, directive.number, directive.action, what, directive.expires_at, avoid, directive.reason
        )
        laid = ""
        if what == RESTART:
            try:
                laid = self._lay(directive)
            except KubernetesError as error:
                orders.conclude(directive, Over(False, str(error)))
                return
        over = carry_out(self._turns(server, owned), order, self._words, time.time, self._end.wait, self._say)
        if over is not None:
            if not over.done and laid:
                pointer.take_back(laid, directive.number)
            orders.conclude(directive, over)
        elif not self._end.is_set():
            orders.leave_open(directive)

    def _lay(self, directive: Directive) -> str:
        if not sdk_speaks(self._run.records):
            raise pointer.PointerError(
                "the trainer does not speak by the SDK: begun again, it would go on from its own newest checkpoint, "
                "which is not the one that was chosen"
            )
        return pointer.lay(self._run, directive.number, str(directive.arguments.get("checkpoint", "")))

    def _words(self) -> dict[str, str]:
        """The ledger as annotations, none where none has been written yet."""
        return jobledger.written(*self._ledger) if self._ledger is not None else {}

    def _turns(self, server: Server, owned: Owned) -> Turns:
        return Turns(server, owned.kind, owned.ref, time.time, self._ticking)

    def _send_events(self, server: Server, owned: Owned) -> None:
        if self._ticking() < self._quiet_until:
            return
        pod = self._pod
        at = [Regarding(owned.kind.api, owned.kind.kind, owned.ref.name, pod.namespace, owned.uid)]
        at += [Regarding("v1", "Pod", pod.name, pod.namespace, pod.uid)] if pod.uid else []
        try:
            self._events.send(server, tuple(at), pod.node)
            self._fault("events", "")
        except AwayError:
            raise
        except KubernetesError as error:  # events are for looking: without them all else goes on
            self._fault("events", str(error))
            self._quiet_until = self._ticking() + _CHECK_SECONDS

    def _send_ledger(self, server: Server, owned: Owned) -> None:
        """Not over one that knows more: another agent's, in a pod that came after this one."""
        now = self._ticking()
        if not self._ledger_due or now - self._ledger_at < _LEDGER_SECONDS:
            return
        self._ledger_at, words = now, self._words()
        job = server.ask(get(owned.ref))
        ours, _ = jobledger.read(words)
        theirs, _ = jobledger.read(annotations_of(job))
        self._ledger_due = False
        if ours is None or (theirs is not None and theirs.counts > ours.counts):
            return
        try:
            meta = {"resourceVersion": version_of(job), "annotations": words}
            server.ask(patch(owned.ref, {"metadata": meta}))
            self._fault("ledger", "")
        except ConflictError:
            self._ledger_due = True
        except ForbiddenError as error:
            self._fault("ledger", str(error))

    def _fault(self, about: str, said: str) -> None:
        self._faults = {**self._faults, about: said}


def connect() -> tuple[Server, Pod]:
    """The API server by the pod's service account, and this pod by the downward API; raises SetupError."""
    return api.connect(), this_pod()
