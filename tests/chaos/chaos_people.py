"""People: who pauses, approves or denies by the command files, and whoever lays strange files where they matter."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zlib import crc32

from chaos_scenarios import Scenario

from gyrostat.wire import frames
from gyrostat_agent import ledgerfile
from gyrostat_agent.loop import Agent
from gyrostat_agent.rundir import prepare
from gyrostat_agent.sources import commands

RUN = "chaos"


class People:
    """Everybody around one run who says something to its agent."""

    def __init__(self, path: str, scenario: Scenario, said: Callable[[str], None]) -> None:
        self._path, self._scenario, self._said = path, scenario, said
        self._answered: set[str] = set()

    def meddle(self, number: int) -> None:
        """Lay down a file of another wire version in the round that the scenario names."""
        if number == self._scenario.foreign_at:
            path = Path(self._path, "records", f"trainer-00001-{'f' * 18}.000")
            path.parent.mkdir(mode=0o700, exist_ok=True)
            path.write_bytes(_foreign())
            path.chmod(0o600)

    def answer(self, number: int, agent: Agent | None) -> None:
        """Pause and resume in their rounds; approve or deny what waits, once each."""
        scenario = self._scenario
        if number in scenario.pause:
            self._give("pause" if number == scenario.pause[0] else "resume", {"by": "ada"})
        if number == scenario.silence[0]:
            self._give("silence", {"all": True, "seconds": scenario.silence[1], "reason": "maintenance", "by": "ada"})
        if agent is None or not scenario.person:
            return
        for incident in agent.engine.state.incidents:
            for action in incident.actions[-1:]:
                asked = not action.number and "needs approval" in action.reason
                due = incident.open if scenario.person != "too late" else incident.state == "stopped"
                if asked and due and action.id not in self._answered:
                    self._answered.add(action.id)
                    verb = "deny" if scenario.person == "denies" else "approve"
                    self._give(verb, {"action": action.id, "by": "ada"})

    def _give(self, verb: str, arguments: dict[str, Any]) -> None:
        self._said(verb)
        commands.give(prepare(self._path), verb, arguments)


class Tamperer:
    """Whatever may befall the ledger while nobody looks: a disk, another version, a backup that is put back."""

    def __init__(self, root: str) -> None:
        self._path = Path(ledgerfile.path_of(root))
        self._first = b""

    def look(self) -> None:
        """Keep the first ledger that there ever was: a backup."""
        if not self._first and self._path.exists():
            self._first = self._path.read_bytes()

    def tamper(self, how: str) -> bool:
        """Do it; False where there is no ledger yet."""
        if not self._path.exists():
            return False
        written = self._path.read_bytes()
        if how == "absent":
            os.unlink(self._path)
        else:
            self._path.write_bytes(_TAMPERED[how](written, self._first))
        return True


def _with(written: bytes, key: str, value: object) -> bytes:
    return json.dumps({**json.loads(written), key: value}).encode()


_TAMPERED: dict[str, Callable[[bytes, bytes], bytes]] = {
    "older": lambda written, first: first,
    "newer": lambda written, first: _with(written, "version", 99),
    "damaged": lambda written, first: written[: len(written) // 2],
    "another's": lambda written, first: _with(written, "run", "another"),
}


def _foreign() -> bytes:
    """A frame of another major version, whose header proves itself."""
    head = frames._UNPROVEN.pack(frames.MAGIC, frames.MAJOR + 8, 0, 1, 0, 1, 0, 0, 0, 1, -1, 0, 0)
    return head + frames._CRC.pack(crc32(head)) + bytes(64)
