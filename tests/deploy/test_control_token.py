"""The control token in a pod: what the init step makes of a Secret is what the agent takes."""

import os
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gyrostat_agent.access import tokenfile
from gyrostat_agent.errors import SetupError

KUSTOMIZE = Path(__file__).resolve().parents[2] / "deploy/kustomize"
TOKEN = "0123456789abcdef" * 4


@pytest.fixture
def pod(build: Callable[[Path], Any], find_pods: Any) -> Any:
    """The job that takes words over HTTP."""
    (document,) = build(KUSTOMIZE / "overlays/job-control")
    (found,) = find_pods(document)
    return found


@pytest.fixture
def mounted(tmp_path: Path) -> Path:
    """A Secret as the kubelet mounts it: a link to a link, readable by all."""
    version = tmp_path / "secret/..2026_01_01"
    version.mkdir(parents=True)
    (version / "token").write_text(TOKEN)
    (version / "token").chmod(0o444)
    (tmp_path / "secret/..data").symlink_to(version.name)
    (tmp_path / "secret/token").symlink_to("..data/token")
    return tmp_path / "secret/token"


def test_the_init_step_makes_a_file_that_the_agent_takes(pod: Any, mounted: Path, tmp_path: Path) -> None:
    """Its own command, run on a Secret's links: a real file of this user's, mode 0600, whatever the umask."""
    step = pod.spec["initContainers"][0]
    copy = tmp_path / "token"
    places = {step["command"][-2]: str(mounted), step["command"][-1]: str(copy)}
    command = [places.get(word, word) for word in step["command"]]
    subprocess.run(command, check=True, timeout=30, preexec_fn=lambda: os.umask(0))
    assert stat.S_IMODE(copy.lstat().st_mode) == 0o600 and not copy.is_symlink()
    assert tokenfile.read(str(copy)) == TOKEN.encode()
    with pytest.raises(SetupError):  # and without the step it would not have been taken
        tokenfile.read(str(mounted))


def test_the_step_comes_first_and_copies_to_where_the_agent_reads(pod: Any) -> None:
    """It ends before the agent starts; the folder is memory, and the trainer's container does not mount it."""
    first, second = pod.spec["initContainers"]
    assert (first["name"], second["name"], first.get("restartPolicy")) == ("gyrostat-token", "gyrostat", None)
    assert f"--control-token={first['command'][-1]}" in second["args"]
    volumes = {v["name"]: v for v in pod.spec["volumes"]}
    assert volumes["gyrostat-token"]["emptyDir"]["medium"] == "Memory"
    secret = volumes["gyrostat-control"]["secret"]
    assert secret["defaultMode"] == 0o444, "without fsGroup the file is root's: another user reads it as one of all"
    mounting = {
        c["name"] for c in pod.containers for m in c["volumeMounts"] if m["name"].startswith("gyrostat-control")
    }
    assert mounting == {"gyrostat-token"}
    assert "gyrostat-token" not in {m["name"] for m in pod.spec["containers"][0]["volumeMounts"]}
