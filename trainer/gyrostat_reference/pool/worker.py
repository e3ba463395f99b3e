"""The worker: a child process of the trainer that plays sessions, one at a time.

Started by ``process`` as ``python -m gyrostat_reference.pool.worker FD PARENT``; FD is its end of the line. It gets one
setup and then sessions; it says ``ready``, ``alive`` (from a thread of its own), and for a session its ``round``s,
or that it ``failed`` or that the policy is ``destroyed``. It keeps no session: what it has not said does not exist.
"""

import ctypes
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import torch

from gyrostat_reference.model import Shape
from gyrostat_reference.pool.session import Session, decode_session, play
from gyrostat_reference.pool.weights import Policy, load_policy
from gyrostat_reference.pool.wire import Line, LineClosed, Message
from gyrostat_reference.rollout import PolicyDestroyed

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


class Worker:
    """What a worker holds: its setup, the policy that it loaded last, how many rounds it has played."""

    def __init__(self, line: Line, setup: Message) -> None:
        self._line, self._shape = line, Shape(*setup["shape"])
        self._poison_item: int | None = setup["poison_item"]
        self._blow: dict[str, object] = setup["blow"] or {}
        self._policies: dict[Path, Policy] = {}
        self._played = 0

    def serve(self, message: Message) -> None:
        """Play a session to its end, or say why not."""
        try:
            policy = self._policy(Path(message["policy"]))
            self._play(decode_session(message["session"]), policy)
        except PolicyDestroyed as error:
            self._line.send({"kind": "destroyed", "why": str(error)})
        except LineClosed:
            raise
        except Exception as error:  # whatever an environment raises is for the trainer to judge, not to die of
            self._line.send({"kind": "failed", "why": f"{type(error).__name__}: {error}"[:1000]})

    def _play(self, session: Session, policy: Policy) -> None:
        while session.rewards is None:
            done = play(session, policy, self._poison_item)
            self._suffer()
            self._line.send({"kind": "round", "round": done.encode()})
            session = session.after(done)

    def _policy(self, path: Path) -> Policy:
        if path not in self._policies:
            self._policies = {path: load_policy(path, self._shape)}
        return self._policies[path]

    def _suffer(self) -> None:
        """Break, where the experiment's fault wants it at this round."""
        self._played += 1
        if self._blow.get("round") != self._played:
            return
        if self._blow["how"] == "hang":
            threading.Event().wait()
        os.kill(os.getpid(), signal.SIGKILL if self._blow["how"] == "kill" else signal.SIGSTOP)


def main() -> None:
    """Serve until the trainer closes the line or dies."""
    fd, parent = map(int, sys.argv[1:])
    _die_with(parent)
    torch.set_num_threads(1)  # results differ in the last bits otherwise, and two threads spin for one core
    line = Line(socket.socket(fileno=fd))
    try:
        messages = _messages(line)
        setup = next(messages)
        threading.Thread(target=_beat, args=(line, float(setup["heartbeat"])), daemon=True, name="heartbeat").start()
        worker = Worker(line, setup)
        line.send({"kind": "ready"})
        for message in messages:
            worker.serve(message)
    except LineClosed:
        _leave()


def _messages(line: Line) -> Iterator[Message]:
    while True:
        yield from line.read()


def _beat(line: Line, seconds: float) -> None:
    pause = threading.Event()
    try:
        while not pause.wait(seconds):
            line.send({"kind": "alive"})
    except LineClosed:
        _leave()


def _leave() -> NoReturn:
    """Go at once: nothing here needs tidying up, the main thread may hang, and torch's own end takes long."""
    os._exit(0)


def _die_with(parent: int) -> None:
    """Be killed when the trainer's thread that started us ends, also while stopped; 1. its death before this call."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # 1. it is never told again
        _leave()


if __name__ == "__main__":
    main()
