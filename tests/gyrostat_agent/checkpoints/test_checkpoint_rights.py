"""Checkpoints of another user, and roots that can only be read: said once, clearly, with what still works."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from checkpoint_folders import contents, written

from gyrostat_agent.checkpoints import CheckpointSource, InlineVerifier
from gyrostat_agent.checkpoints.layouts.examine import examine
from gyrostat_agent.checkpoints.pins import FOLDER

OTHER = 65534  # nobody
SAVED = Path(__file__).parent / "data" / "trl" / "checkpoint-2"


@pytest.fixture
def root() -> Iterator[Path]:
    """A root that every user may look into; pytest's own folders are their owner's alone."""
    if os.geteuid():
        pytest.skip("only root can become another user")
    made = Path(tempfile.mkdtemp(prefix="gyrostat-test-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


def as_other(look: Callable[[], Any]) -> Any:
    """What ``look`` returns to another user: in a child, for there is no way back."""
    examine("/nowhere")  # imported by who may read it
    here, there = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks where there are threads: it only reads
        child = os.fork()
    if not child:
        try:
            os.setgroups([])
            os.setresgid(OTHER, OTHER, OTHER)
            os.setresuid(OTHER, OTHER, OTHER)
            os.write(there, json.dumps(look()).encode())
        except BaseException as error:
            os.write(there, json.dumps(repr(error)).encode())
        os._exit(0)
    os.close(there)
    with open(here, "rb") as file:
        said = file.read()
    os.waitpid(child, 0)
    return json.loads(said)


def looked(root: Path, turns: int = 3) -> tuple[list[tuple[str, str, str]], str, str]:
    """What an agent is told in some ticks, the fault of the root, and that of the pins."""
    source = CheckpointSource(InlineVerifier(), pinning=True)
    source.set_root(str(root))
    told = []
    for _ in range(turns):
        source.poll()
        told += [(os.path.basename(seen.path), seen.fit, seen.why) for seen in source.drain()]
    return told, source.fault, source.pin_fault


def test_weights_of_another_user_are_said_once_and_hide_no_others(root: Path) -> None:
    """Hugging Face writes 0600. What can be read is verified all the same, and of what cannot it is said who could."""
    shutil.copytree(SAVED, root / "checkpoint-2")
    (root / "checkpoint-2" / "model.safetensors").chmod(0o600)
    written(root, 1)
    told, fault, _ = as_other(lambda: looked(root))
    who = "cannot be read by user 65534, it is user 0's: nothing is certified; run the agent with UID 0"
    closed = ["checkpoint-2", "unfit", f"model.safetensors {who}"]
    assert (sorted(told), fault) == ([closed, ["step-00000001", "verified", ""]], "")


def test_a_manifest_of_another_user_is_said_with_who_could(root: Path) -> None:
    """The reference trainer under umask 077."""
    folder = written(root, 1)
    (folder / "manifest.json").chmod(0o600)
    ((_, fit, why),), _, _ = as_other(lambda: looked(root))
    assert fit == "unfit" and "manifest.json cannot be read by user 65534" in why and "run the agent with UID 0" in why


def test_a_folder_of_another_user_is_said_with_who_could(root: Path) -> None:
    """The whole root closed: it is blindness, and not an empty folder."""
    written(root, 1)
    root.chmod(0o700)
    told, fault, _ = as_other(lambda: looked(root))
    assert told == [] and "cannot be listed: cannot be read by user 65534, it is user 0's" in fault
    root.chmod(0o755)


def test_pins_that_may_not_be_made_are_said_once(root: Path) -> None:
    """What is verified is still verified: it can be gone back to until rotation takes it."""
    written(root, 1)
    told, _, pins = as_other(lambda: looked(root))
    assert told == [["step-00000001", "verified", ""]]
    assert pins == "step-00000001 cannot be pinned: Permission denied; rotation may take the last healthy checkpoint"


READ_ONLY = """
import json, sys, test_checkpoint_rights as t
print(json.dumps(t.looked(t.Path(sys.argv[1]))))
"""


def test_a_root_that_can_only_be_read(tmp_path: Path) -> None:
    """A real read-only mount: all is verified, nothing is pinned, and that is said once."""
    if os.geteuid() or shutil.which("unshare") is None:
        pytest.skip("only root may mount, in a name space of its own (unshare)")
    written(tmp_path, 1, contents())
    mount = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" || exit 77; exec "$2" -c "$3" "$1"'
    path = os.pathsep.join([os.path.dirname(__file__), *sys.path])
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", mount, "sh", str(tmp_path), sys.executable, READ_ONLY],
        env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    if done.returncode in (1, 77) and "ermi" in done.stderr:
        pytest.skip(f"this machine lets nobody mount: {done.stderr.strip()[:200]}")
    assert done.returncode == 0, done.stderr
    told, fault, pins = json.loads(done.stdout)
    assert (told, fault) == ([["step-00000001", "verified", ""]], "")
    assert "Read-only file system" in pins and not (tmp_path / FOLDER).exists()
