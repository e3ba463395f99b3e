"""Many agents of one run in this process: real engines, real sockets, a real lease in a folder, clocks in hand."""

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from gyrostat_agent.cli.options import builtin
from gyrostat_agent.cluster.candidate import Candidate
from gyrostat_agent.cluster.intake import Intake
from gyrostat_agent.cluster.lockfile import FileLease
from gyrostat_agent.cluster.member import Member
from gyrostat_agent.cluster.outbox import Outbox
from gyrostat_agent.cluster.post import Post
from gyrostat_agent.cluster.sender import Sender


def token_file(folder: Path) -> str:
    """A token that all of them bear."""
    path = folder / "cluster.token"
    if not path.exists():
        path.write_text(secrets.token_hex(16))
        path.chmod(0o600)
    return str(path)


class Node:
    """One node's part: what a service puts together, without its threads; ``step`` and ``forward`` are their work."""

    def __init__(self, folder: Path, name: str, clock: Callable[[], float], patience: float = 0.05) -> None:
        self.name, self.token = name, token_file(folder)
        self.outbox = Outbox()
        self.wakes = 0
        self.intake = Intake("127.0.0.1:0", self.token, "run", self.term, self._wake, patience=patience, gather=0.0)
        root = folder / "shared"
        root.mkdir(mode=0o700, exist_ok=True)
        self.candidate = Candidate(FileLease(str(root), "run", clock), name, self.intake.address, clock)
        self.sender = Sender(
            "run", name, self.outbox, lambda: self.candidate.post, lambda: Path(self.token).read_bytes()
        )
        self.member = Member(name, self.candidate, self.intake, self.sender, self.outbox, builtin(), clock)

    @property
    def post(self) -> Post:
        return self.candidate.post

    def term(self) -> int:
        return self.post.term if self.post.leads else 0

    def _wake(self) -> None:
        self.wakes += 1


@contextmanager
def nodes(folder: Path, clock: Callable[[], float], *names: str) -> Iterator[list[Node]]:
    """Some of them; the first one leads, for it is beside rank 0."""
    made = [Node(folder, name, clock) for name in names]
    try:
        made[0].candidate.step(beside=True)
        made[0].candidate.step(beside=True)
        for one in made[1:]:
            one.candidate.step(beside=False)
        assert made[0].post.leads and all(n.post.leader == names[0] for n in made)
        yield made
    finally:
        for one in made:
            one.intake.close()


def is_root() -> bool:
    """Whether network namespaces can be made here."""
    return os.geteuid() == 0
