"""Two nodes, an agent each: one decides for the run, the other takes over, who is cut off says so. Real processes."""

import json
import os
import secrets
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from processes import PACK, SKIP, gyrostat, until, world

from gyrostat import Telemetry
from gyrostat_agent.rundir import prepare

NAN = float("nan")
TAKEN_OVER = 15.0


class Cluster:
    """``run(n)`` is node n's run directory; each rank's trainer is a thread of the test that tells steps."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.shared = folder / "checkpoints"
        self.shared.mkdir(mode=0o700)
        self.token = folder / "token"
        self.token.write_text(secrets.token_hex(16))
        self.token.chmod(0o600)
        self.pack = folder / "pack.yaml"
        self.pack.write_text(PACK.replace("RUNGS", SKIP))
        self.agents: list[subprocess.Popen[bytes]] = []
        self.poison = threading.Event()
        self.ending = threading.Event()

    def run(self, node: int) -> Path:
        return self.folder / f"node-{node}"

    def agent(self, node: int, address: str, *before: str) -> "subprocess.Popen[bytes]":
        prepare(str(self.run(node)))
        argv = [*before, sys.executable, "-m", "gyrostat_agent", "agent", str(self.run(node)), "--run", "run"]
        argv += ["--rules", str(self.pack), "--mode", "act", "--no-approvals", "--listen", ""]
        argv += ["--cluster", str(self.shared), "--cluster-address", address, "--node", f"node-{node}"]
        argv += ["--cluster-token-file", str(self.token)]
        with open(self.folder / f"agent-{node}.err", "ab") as said:
            self.agents.append(subprocess.Popen(argv, stderr=said, env=world()))
        return self.agents[-1]

    def train(self, rank: int) -> None:
        """Tell a step ten times a second; ``poison`` makes rank 1's not finite."""
        threading.Thread(target=self._tell, args=(rank,), daemon=True).start()

    def _tell(self, rank: int) -> None:
        place = str(self.run(rank))
        telemetry = Telemetry(place, run="run", checkpoint_root=str(self.shared), rank=rank, world=2)
        step = 0
        while not self.ending.wait(0.1):
            step += 1
            bad = rank == 1 and self.poison.is_set()
            telemetry.record(step, loss=NAN if bad else 1.0, step_applied=1.0)

    def status(self, node: int) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads((self.run(node) / "agent" / "status.json").read_text())
        except FileNotFoundError:
            return {}
        return found

    def fellows(self, node: int) -> dict[str, Any]:
        found: dict[str, Any] = self.status(node).get("fellows") or {}
        return found

    def hears_all(self, node: int) -> bool:
        return len({r["rank"] for r in self.status(node).get("ranks", []) if r["role"] == "trainer"}) == 2

    def rank_step(self, node: int, rank: int) -> int:
        return next((r["step"] for r in self.status(node).get("ranks", []) if r["rank"] == rank), -1)

    def close(self) -> None:
        self.ending.set()
        for one in self.agents:
            if one.poll() is None:
                one.kill()
            one.wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    yield made
    made.close()


def free() -> str:
    import socket

    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{found.getsockname()[1]}"


def test_one_decides_and_another_takes_over(cluster: Cluster) -> None:
    """The agent beside rank 0 hears of rank 1's node; killed, the other decides within 15 s; back, it decides again."""
    first, address = cluster.agent(0, free()), free()
    cluster.train(0)
    until(lambda: cluster.fellows(0).get("leads"), "nobody began to decide")
    cluster.agent(1, address)
    cluster.train(1)
    until(lambda: cluster.hears_all(0), "the ranks of the other node were never heard")
    said = gyrostat("pause", str(cluster.run(1)))
    assert "node-0 decides for this run" in said.stdout + said.stderr, said
    first.kill()
    first.wait()
    until(lambda: cluster.fellows(1).get("leads"), "nobody took over", TAKEN_OVER)
    cluster.poison.set()
    until(lambda: cluster.status(1).get("open"), "a NaN was not found by who decides now")
    cluster.agent(0, free())
    until(lambda: cluster.fellows(0)["term"] == 3, "who is beside rank 0 was not given way to")
    assert cluster.fellows(0)["leads"]
    until(lambda: cluster.hears_all(0), "the ranks of the other node were never heard again")
    assert not (cluster.run(1) / "directives" / "1.json").exists(), "no order lies where no rank 0 reads it"


NAMESPACES = os.geteuid() == 0 and shutil.which("ip") is not None


@pytest.fixture
def cable() -> Iterator[tuple[str, str]]:
    """Two network namespaces and a cable between them."""
    names = tuple(f"gy{os.getpid() % 10000}{end}" for end in "ab")

    def ip(*words: str) -> None:
        subprocess.run(["ip", *words], check=True, capture_output=True)

    with ExitStack() as last:
        try:
            for name in names:
                ip("netns", "add", name)
                last.callback(subprocess.run, ["ip", "netns", "del", name], check=False, capture_output=True)
            ip("link", "add", f"{names[0]}v", "netns", names[0], "type", "veth", "peer", "name", f"{names[1]}v",
               "netns", names[1])  # fmt: skip
            for place, name in enumerate(names, 1):
                ip("-n", name, "addr", "add", f"10.77.0.{place}/24", "dev", f"{name}v")
                ip("-n", name, "link", "set", "lo", "up")
                ip("-n", name, "link", "set", f"{name}v", "up")
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"no network namespace can be made here: {getattr(error, 'stderr', error)!r}")
        yield names


@pytest.mark.full  # half a minute of real waiting; the roll and the sender are held by quick tests
@pytest.mark.skipif(not NAMESPACES, reason="network namespaces need root and the ip command")
def test_who_is_cut_off_goes_on_and_says_so(cluster: Cluster, cable: tuple[str, str]) -> None:
    """The follower watches its ranks, the leader does not see them; once the cable is mended all that waited comes."""
    for node, name in enumerate(cable):
        cluster.agent(node, f"10.77.0.{node + 1}:9468", "ip", "netns", "exec", name)
        cluster.train(node)
    until(lambda: cluster.fellows(0).get("leads") and cluster.hears_all(0), "they never met")
    subprocess.run(["ip", "-n", cable[0], "link", "set", f"{cable[0]}v", "down"], check=True)
    until(lambda: cluster.fellows(0)["missing"] == 1, "the leader did not miss the node")
    until(lambda: cluster.fellows(1)["fault"], "who is cut off does not say so")
    assert not cluster.status(1)["ready"] and "cannot be reached" in str(cluster.status(1)["blind"])
    assert not cluster.status(0)["open"], "not seen is neither dead nor a stall"
    here = cluster.rank_step(1, 1)
    until(lambda: cluster.rank_step(1, 1) > here, "who is cut off does not watch its own rank")
    behind = cluster.rank_step(0, 1)
    subprocess.run(["ip", "-n", cable[0], "link", "set", f"{cable[0]}v", "up"], check=True)
    until(lambda: cluster.fellows(0)["missing"] == 0, "the node is not heard again")
    until(lambda: cluster.rank_step(0, 1) > behind + 100, "what waited never came")
    assert cluster.fellows(1)["dropped"] == 0
    until(lambda: not cluster.fellows(1)["fault"], "it still says that it is cut off")
