"""People: who pauses, approves or denies by the command files, and whoever lays a strange file in the records."""

from pathlib import Path
from zlib import crc32

from chaos_scenarios import Scenario

from gyrostat.wire import frames
from gyrostat_agent.loop import Agent
from gyrostat_agent.rundir import prepare
from gyrostat_agent.sources import commands

RUN = "chaos"


class People:
    """Everybody around one run who says something to its agent."""

    def __init__(self, path: str, scenario: Scenario) -> None:
        self._path, self._scenario = path, scenario
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
        if agent is None or not scenario.person:
            return
        for incident in agent.engine.state.incidents:
            for action in incident.actions[-1:]:
                waits = incident.open and not action.number and action.reason.startswith("needs approval")
                if waits and action.id not in self._answered:
                    self._answered.add(action.id)
                    verb = "approve" if scenario.person == "approves" else "deny"
                    self._give(verb, {"action": action.id, "by": "ada"})

    def _give(self, verb: str, arguments: dict[str, str]) -> None:
        commands.give(prepare(self._path), verb, arguments)


def _foreign() -> bytes:
    """A frame of another major version, whose header proves itself."""
    head = frames._UNPROVEN.pack(frames.MAGIC, frames.MAJOR + 8, 0, 1, 0, 1, 0, 0, 0, 1, -1, 0, 0)
    return head + frames._CRC.pack(crc32(head)) + bytes(64)
