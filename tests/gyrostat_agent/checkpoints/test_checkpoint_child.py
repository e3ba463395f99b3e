import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from checkpoint_folders import big, child_verifier, contents, floats, packed, until, verdicts, written

from gyrostat_agent.checkpoints import ChildVerifier, InlineVerifier
from gyrostat_rules.inputs import CheckpointSeen


def maps(pid: int | None, path: Path) -> bool:
    """True while process ``pid`` has ``path`` mapped."""
    return str(path) in Path(f"/proc/{pid}/maps").read_text()


def test_verdicts_come_one_by_one(tmp_path: Path) -> None:
    """Several checkpoints are judged by one child, in the order asked, and select tells when to fetch."""
    good, bad = written(tmp_path, 1), written(tmp_path, 2)
    (bad / "state.json").unlink()
    with child_verifier() as verifier:
        assert (verifier.fileno(), verifier.pid) == (None, None)
        verifier.start(str(good))
        pid = verifier.pid
        verifier.start(str(bad))
        found = []
        while len(found) < 2:
            assert select.select([verifier.fileno()], [], [], 20)[0]
            found += verifier.results()
        assert [(seen.path, seen.fit) for seen in found] == [(str(good), "verified"), (str(bad), "unfit")]
        assert found[0] == verdict_of(good)
        assert verifier.pid == pid
    assert not os.path.exists(f"/proc/{pid}")


def verdict_of(folder: Path) -> object:
    inline = InlineVerifier()
    inline.start(str(folder))
    (seen,) = inline.results()
    assert inline.results() == []
    return seen


def test_one_is_read_anew_in_a_child_of_its_own(tmp_path: Path) -> None:
    """Beside what is being verified: it is about to be used, and is waited for; one that takes too long is not."""
    good, large = written(tmp_path, 1), big(tmp_path)
    with child_verifier() as verifier:
        assert verifier.reread(str(good), 60.0) == verdict_of(good)
        (good / "state.json").write_bytes(b"{")
        found = verifier.reread(str(good), 60.0)
        assert found is not None and found.fit == "unfit"
        assert verifier.reread(str(large), 0.001) is None
        assert (verifier.pid, verifier.results()) == (None, [])


def test_child_gives_way(tmp_path: Path) -> None:
    """The child is nice, is the first to be killed for memory, dumps no core, and is not interrupted by ctrl-C."""
    with child_verifier() as verifier:
        verifier.start(str(written(tmp_path)))
        verdicts(verifier, 1)
        proc = Path(f"/proc/{verifier.pid}")
        assert os.getpriority(os.PRIO_PROCESS, verifier.pid or 0) == min(19, os.getpriority(os.PRIO_PROCESS, 0) + 10)
        assert (proc / "oom_score_adj").read_text() == "1000\n"
        assert "Max core file size        0 " in (proc / "limits").read_text()
        os.kill(verifier.pid or 0, signal.SIGINT)
        verifier.start(str(tmp_path / "step-00000020"))
        assert verdicts(verifier, 1)["step-00000020"].fit == "verified"


def test_file_cut_short_while_it_is_mapped(tmp_path: Path) -> None:
    """A real SIGBUS ends the child alone; that checkpoint is unfit, and the next is verified by a new child."""
    cut, good = big(tmp_path), written(tmp_path, 1)
    with child_verifier() as verifier:
        verifier.start(str(cut))
        verifier.start(str(good))
        first = verifier.pid or 0
        until(lambda: maps(first, cut / "model.safetensors"), "the child to map the file")
        os.kill(first, signal.SIGSTOP)
        os.truncate(cut / "model.safetensors", 0)
        os.kill(first, signal.SIGCONT)
        found = verdicts(verifier, 2)
        assert verifier.pid != first
    assert found[cut.name].why == (
        f"could not be verified: the verifier was killed by signal {int(signal.SIGBUS)}: "
        "a file was cut short while it was read"
    )
    assert (found[cut.name].fit, found[cut.name].step) == ("unfit", 90)
    assert found[good.name].fit == "verified"


def test_child_killed(tmp_path: Path) -> None:
    """A child that is killed costs the checkpoint in hand, once, and none of the others."""
    folders = [written(tmp_path, step) for step in (1, 2, 3)]
    with child_verifier() as verifier:
        for folder in folders:
            verifier.start(str(folder))
        os.kill(verifier.pid or 0, signal.SIGKILL)
        found = verdicts(verifier, 3)
        assert [found[f.name].fit for f in folders] == ["unfit", "verified", "verified"]
        assert found[folders[0].name].why == "could not be verified: the verifier was killed by signal 9"
        verifier.start(str(folders[0]))  # if somebody asks again, it is tried again
        assert verdicts(verifier, 1)[folders[0].name].fit == "verified"


def test_idle_child_ends(tmp_path: Path) -> None:
    """Without work the child goes, and comes back when there is some."""
    folder = written(tmp_path)
    with child_verifier(idle_s=0.05) as verifier:
        verifier.start(str(folder))
        verdicts(verifier, 1)
        pid = verifier.pid
        until(lambda: verifier.results() == [] and verifier.fileno() is None, "the idle child to end")
        assert not os.path.exists(f"/proc/{pid}")
        verifier.start(str(folder))
        assert verdicts(verifier, 1)[folder.name].fit == "verified"


def dying(where: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """Have every child run ``code`` when it starts."""
    where.mkdir()
    (where / "sitecustomize.py").write_text(f"import os\n{code}\n")
    monkeypatch.syspath_prepend(str(where))


def test_child_that_ended_idle_with_a_path_on_its_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A child that ends just as it is given a path does not make that checkpoint unfit."""
    once = tmp_path / "once"
    once.touch()
    code = f"if os.path.exists({str(once)!r}): os.unlink({str(once)!r}); os._exit(0)"
    dying(tmp_path / "site", monkeypatch, code)
    folder = written(tmp_path)
    with child_verifier() as verifier:
        verifier.start(str(folder))
        assert verdicts(verifier, 1)[folder.name].fit == "verified"
    assert not once.exists()


@pytest.mark.parametrize(("status", "starts"), [(0, 2), (3, 1)], ids=["silent", "failing"])
def test_child_that_cannot_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int, starts: int) -> None:
    """A verifier that never works is told of, and is started at most twice a checkpoint."""
    count = tmp_path / "count"
    dying(tmp_path / "site", monkeypatch, f"open({str(count)!r}, 'a').write('x'); os._exit({status})")
    folder = written(tmp_path)
    with child_verifier() as verifier:
        verifier.start(str(folder))
        found = verdicts(verifier, 1)[folder.name]
    assert (found.fit, found.why) == ("unfit", f"could not be verified: the verifier ended with status {status}")
    assert count.read_text() == "x" * starts


def test_chatty_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a site's own start-up code prints is not taken for a verdict."""
    other = CheckpointSeen("/elsewhere", 1, 0, "", "verified", "", 0.0)
    dying(tmp_path / "site", monkeypatch, f"print('welcome'); print({json.dumps(other._asdict())!r}, flush=True)")
    folder = written(tmp_path)
    with child_verifier() as verifier:
        verifier.start(str(folder))
        assert verdicts(verifier, 1).keys() == {folder.name}


def test_fifty_checkpoints(tmp_path: Path) -> None:
    """Of fifty, the three bad ones among the newest are found, and no good one is condemned."""
    folders = [written(tmp_path, step, contents(step)) for step in range(1, 47)]
    nan = packed({"w": ("F32", floats(9) + b"\x00\x00\xc0\x7f")})
    bad = [
        written(tmp_path, 47, {**contents(), "model.safetensors": nan}),
        written(tmp_path, 48),
        written(tmp_path, 49),
    ]
    os.truncate(bad[1] / "optimizer.safetensors", 99)
    with open(bad[2] / "model.safetensors", "r+b") as file:
        file.seek(-2, os.SEEK_END)
        file.write(b"\x11")
    good = [*folders, written(tmp_path, 50)]
    with child_verifier() as verifier:
        for folder in (*good, *bad):
            verifier.start(str(folder))
        found = verdicts(verifier, 50)
    assert {name for name, seen in found.items() if seen.fit == "verified"} == {folder.name for folder in good}
    assert [found[folder.name].why.split(":")[0] for folder in bad] == [
        "model.safetensors", "optimizer.safetensors is truncated", "model.safetensors",
    ]  # fmt: skip


def test_close_leaves_no_process(tmp_path: Path) -> None:
    """Closing in the middle of a large file ends the child at once, and twice is once."""
    verifier = ChildVerifier()
    verifier.start(str(big(tmp_path)))
    pid = verifier.pid
    verifier.close()
    verifier.close()
    assert not os.path.exists(f"/proc/{pid}")
    assert (verifier.fileno(), verifier.results()) == (None, [])


def test_protocol_by_hand(tmp_path: Path) -> None:
    """The child can be asked from a shell: lines in, lines out, and a line that is no path is refused in words."""
    folder = written(tmp_path)
    command = [sys.executable, "-m", "gyrostat_agent.checkpoints.child"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(os.path.abspath(p) for p in sys.path)}
    asked = f"{json.dumps(str(folder))}\n" * 2 + "step-20\n"
    done = subprocess.run(command, input=asked, capture_output=True, text=True, env=environment, timeout=30)
    assert [json.loads(line)["fit"] for line in done.stdout.splitlines()] == ["verified", "verified"]
    assert (done.returncode, done.stderr) == (2, "not a path as a JSON string: b'step-20\\n'\n")


def test_sidecar_does_without_numpy() -> None:
    """The process that only asks imports neither numpy nor torch."""
    code = (
        "import sys, gyrostat_agent.checkpoints as c; c.ChildVerifier(); print({'numpy', 'torch'} & set(sys.modules))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(os.path.abspath(p) for p in sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=30)
    assert (done.stdout, done.stderr) == ("set()\n", "")
