"""Pins where no link can be made: copied within a budget, in a child, proved before they count."""

import errno
import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from checkpoint_folders import contents, until, written

from gyrostat_agent.checkpoints import CheckpointSource, InlineVerifier
from gyrostat_agent.checkpoints.copier import ChildCopier, Order
from gyrostat_agent.checkpoints.copychild import copied
from gyrostat_agent.checkpoints.pinfiles import LINKLESS
from gyrostat_agent.checkpoints.pins import FOLDER, Pins
from gyrostat_agent.checkpoints.reference import CheckpointError
from gyrostat_rules.keeping import Keep

ROOM = 1 << 20


class Copying:
    """Copies in this process, when it is asked whether it has ended; what a test does in between comes first."""

    def __init__(self) -> None:
        self.orders: list[Order] = []
        self.holds = False

    def start(self, order: Order) -> None:
        self.orders.append(order)

    def ended(self) -> str | None:
        if self.holds:
            return None
        try:
            return copied(*self.orders[-1])
        except (CheckpointError, OSError) as error:
            return str(error)

    def close(self) -> None:
        """Nothing is in hand."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


@pytest.fixture
def linkless(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system with neither clones nor links."""
    refuse(monkeypatch, errno.EXDEV)


def refuse(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def link(*_: Any, **__: Any) -> None:
        raise OSError(number, os.strerror(number))

    def ioctl(*_: Any) -> None:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    monkeypatch.setattr(os, "link", link)
    monkeypatch.setattr(fcntl, "ioctl", ioctl)


@pytest.fixture
def copier() -> Copying:
    return Copying()


@pytest.fixture
def source(root: Path, copier: Copying) -> Iterator[CheckpointSource]:
    made = source_of(root, copier)
    yield made
    made.close()


def source_of(root: Path, copier: Copying | ChildCopier, most: int = ROOM) -> CheckpointSource:
    made = CheckpointSource(InlineVerifier(), pinning=True, pin_bytes=most, copier=copier)
    made.set_root(str(root))
    return made


def passed(source: CheckpointSource, *names: str, turns: int = 2) -> list[tuple[str, str]]:
    """What is told in a tick and those after it, while those names are to be kept and all are judged."""
    told = []
    for _ in range(turns):
        source.poll()
        told += [(seen.path, seen.fit) for seen in source.drain()]
        source.keep(Keep(names, frozenset({*names, *(os.path.basename(path) for path, _ in told)})))
    return told


def pinned(root: Path) -> list[str]:
    return sorted(path.name for path in (root / FOLDER).iterdir() if not path.name.startswith("."))


@pytest.mark.parametrize("number", LINKLESS, ids=[errno.errorcode[number] for number in LINKLESS])
def test_what_cannot_be_linked_is_copied(
    source: CheckpointSource, root: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Its bytes and times are those of the checkpoint, and it lives on when that is gone."""
    refuse(monkeypatch, number)
    folder = written(root, 1)
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}
    passed(source, folder.name)
    pin = root / FOLDER / folder.name
    assert {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in pin.iterdir()} == before
    assert source.pin_fault == ""
    shutil.rmtree(folder)
    assert (str(pin), "verified") in passed(source, folder.name)


def test_folders_below_are_copied_too(root: Path, source: CheckpointSource, copier: Copying, linkless: None) -> None:
    """Megatron's ranks lie in folders of their own."""
    import layout_folders  # brings torch, which the process on the other disk does without

    folder = layout_folders.megatron(root)
    passed(source, folder.name)
    found = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.pt"))
    pin = root / FOLDER / folder.name
    assert found and sorted(str(path.relative_to(pin)) for path in pin.rglob("*.pt")) == found


def test_only_what_is_verified_and_needed_is_copied(
    root: Path, source: CheckpointSource, copier: Copying, linkless: None
) -> None:
    """A link costs nothing and is made at once; a copy is made of what somebody may go back to."""
    poisoned = {**contents(), "state.json": b"{"}
    well, ill, other = written(root, 1), written(root, 2, poisoned), written(root, 3)
    passed(source, ill.name, well.name, turns=4)
    assert pinned(root) == [well.name]
    assert other.is_dir() and [os.path.basename(order.source) for order in copier.orders] == [well.name]


def test_without_a_budget_nothing_is_copied_and_that_is_said(root: Path, linkless: None) -> None:
    """With what would help; the default, for a copy of a terabyte is nobody's wish by accident."""
    made = CheckpointSource(InlineVerifier(), pinning=True)
    made.set_root(str(root))
    folder = written(root, 1)
    passed(made, folder.name)
    assert "--pin-bytes SIZE lets it be copied" in made.pin_fault and pinned(root) == []
    made.close()


def test_the_budget_is_a_hard_limit(root: Path, copier: Copying, linkless: None) -> None:
    """Room for one: the second waits, and is said to, until the first is needed no more."""
    first, second = written(root, 1), written(root, 2)
    size = sum(path.stat().st_size for path in first.iterdir())
    made = source_of(root, copier, size + size // 2)
    passed(made, first.name, second.name, turns=4)
    assert pinned(root) == [first.name] and "does not fit in" in made.pin_fault
    passed(made, second.name, turns=4)
    made.keep(Keep((second.name,), frozenset({first.name, second.name})))
    passed(made, second.name, turns=4)
    assert pinned(root) == [second.name] and made.pin_fault == ""
    made.close()


def test_copies_of_an_earlier_agent_count(root: Path, copier: Copying, linkless: None) -> None:
    """The budget is the disk's, not a process's."""
    first, second = written(root, 1), written(root, 2)
    size = sum(path.stat().st_size for path in first.iterdir())
    made = source_of(root, copier, size + size // 2)
    passed(made, first.name, turns=4)
    made.close()
    later = source_of(root, copier, size + size // 2)
    passed(later, second.name, first.name, turns=4)
    assert pinned(root) == [first.name] and "does not fit in" in later.pin_fault
    later.close()


def test_a_half_made_copy_is_no_pin(root: Path, source: CheckpointSource, copier: Copying, linkless: None) -> None:
    """Neither while it is made, nor when whoever made it is gone; the next agent clears it away."""
    copier.holds = True
    folder = written(root, 1)
    passed(source, folder.name)
    (order,) = copier.orders
    shutil.copy(folder / "manifest.json", order.draft)
    assert pinned(root) == [] and len(os.listdir(root / FOLDER)) == 1
    shutil.rmtree(folder)
    assert passed(source, folder.name) == [(str(folder), "unfit")]
    assert Pins(str(root), ROOM, Copying()).find() == ({}, {})
    assert os.listdir(root / FOLDER) == []


@pytest.mark.parametrize("spoil", ["flipped", "another save", "gone"])
def test_a_copy_that_is_not_what_was_verified_never_counts(
    root: Path, source: CheckpointSource, copier: Copying, linkless: None, spoil: str
) -> None:
    """Whatever happened to the source between its verdict and its copy."""
    copier.holds = True
    folder = written(root, 1)
    passed(source, folder.name)
    if spoil == "flipped":
        weights = folder / "model.safetensors"
        found, data = weights.stat(), bytearray(weights.read_bytes())
        data[-2] ^= 1
        weights.write_bytes(data)
        os.utime(weights, ns=(found.st_atime_ns, found.st_mtime_ns))
    else:
        shutil.rmtree(folder)
        if spoil == "another save":
            written(root, 1, contents(seed=9))
    copier.holds = False
    source.keep(Keep((folder.name,), frozenset({folder.name})))
    assert pinned(root) == []
    assert ("cannot be copied" in source.pin_fault) == (spoil != "gone"), source.pin_fault
    assert [name for name in os.listdir(root / FOLDER) if "draft" in name] == []


def test_a_nearly_full_disk_gets_no_copy(
    root: Path, source: CheckpointSource, copier: Copying, linkless: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is extra goes first, and both are said: a trainer that cannot save is worse off."""
    first, second = written(root, 1), written(root, 2)
    passed(source, first.name, second.name, turns=4)
    assert pinned(root) == [first.name, second.name]
    real = os.statvfs(root)
    monkeypatch.setattr(os, "statvfs", lambda path: os.statvfs_result((*real[:4], 0, *real[5:10])))
    third = written(root, 3)
    passed(source, third.name, first.name, second.name, turns=3)
    source.keep(Keep((first.name, second.name), frozenset({first.name, second.name})))
    assert pinned(root) == [first.name]
    assert "only the best checkpoint" in source.pin_fault
    assert third.name not in [os.path.basename(order.source) for order in copier.orders]


def test_a_real_child_copies(root: Path, linkless: None) -> None:
    """In a process of its own, while the loop goes on; one that is killed leaves no pin, and says by what."""
    child = ChildCopier()
    made = source_of(root, child)
    folder = written(root, 1)
    passed(made, folder.name, turns=1)
    assert child.pid is not None and pinned(root) == []
    until(lambda: passed(made, folder.name, turns=1) or pinned(root), "the copy", 60.0)
    assert child.pid is None and made.pin_fault == ""
    other = written(root, 2)
    passed(made, other.name, folder.name, turns=1)
    assert child.pid is not None
    os.kill(child.pid, 9)
    until(lambda: passed(made, other.name, folder.name, turns=1) or made.pin_fault, "what is said of it")
    assert "ended with status -9" in made.pin_fault and pinned(root) == [folder.name]
    made.close()


OTHER_DISK = """
import os, sys, test_pin_copies as t
from pathlib import Path
root, free = Path(sys.argv[1]), sys.argv[2] == "room"
made = t.source_of(root, t.Copying())
folder = t.written(root, 1)
t.passed(made, folder.name)
assert t.pinned(root) == ([folder.name] if free else []), (os.listdir(root / t.FOLDER), made.pin_fault)
assert made.pin_fault == "" if free else "No space left on device" in made.pin_fault, made.pin_fault
assert not [name for name in os.listdir(root / t.FOLDER) if name.endswith(".draft")]
made.close()
print("done")
"""


@pytest.mark.parametrize("size", ["1m", "8k"], ids=["room", "none"])
def test_pins_on_a_disk_of_their_own(tmp_path: Path, size: str) -> None:
    """A real tmpfs is mounted where the pins lie: links fail as the kernel lets them fail, and so does the room."""
    if os.geteuid() or shutil.which("unshare") is None:
        pytest.skip("only root may mount, in a name space of its own (unshare)")
    (tmp_path / FOLDER).mkdir()
    mount = f'mount -t tmpfs -o size={size} none "$1"/{FOLDER} || exit 77; exec "$2" -c "$3" "$1" "$4"'
    words = [sys.executable, OTHER_DISK, "room" if size == "1m" else "none"]
    path = os.pathsep.join([os.path.dirname(__file__), *sys.path])
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", mount, "sh", str(tmp_path), *words],
        env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    if done.returncode in (1, 77) and "ermi" in done.stderr:
        pytest.skip(f"this machine lets nobody mount: {done.stderr.strip()[:200]}")
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
