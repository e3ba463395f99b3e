"""The pointer beside the checkpoints: what a trainer in a new pod does, whose run directory is empty."""

import time
from pathlib import Path

import pytest
from controlled import linked, open_to_others

from gyrostat import Control, Telemetry
from gyrostat.wire import Resume, RunDirectory
from gyrostat.wire.layout import shared_resume


def lay(path: str, number: int, **changed: object) -> Resume:
    """A resume of that number at a path."""
    message = Resume(number, "run-a", f"/ckpt/{number}", "xxh3_128:ab", 30, time.time() + 3600)._replace(**changed)
    at = Path(path)
    at.parent.mkdir(mode=0o700, exist_ok=True, parents=True)
    at.write_bytes(message.encode())
    at.chmod(0o600)
    return message


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "checkpoints"
    folder.mkdir(mode=0o700)
    return folder


def control(run: Path, root: Path | str) -> Control:
    return Control(Telemetry(run, run="run-a", checkpoint_root=root, rank=0, world=1))


def test_a_trainer_in_a_new_pod_finds_what_was_chosen(run: Path, root: Path) -> None:
    """Its run directory is empty; once what it loaded stands in a manifest, it is not done again."""
    message = lay(shared_resume(str(root)), 7)
    assert control(run, root).resume() == message
    assert control(run, root).resume(last_applied=7) is None
    assert control(run, "").resume() is None, "a trainer that names no folder is told nothing by it"


@pytest.mark.parametrize(("own", "shared", "wanted"), [(8, 7, 8), (7, 8, 8)], ids=["own is newer", "shared is newer"])
def test_the_newer_of_two_counts(run: Path, root: Path, own: int, shared: int, wanted: int) -> None:
    """What an earlier restart has left lying is not gone back to."""
    lay(RunDirectory(str(run)).resume, own)
    lay(shared_resume(str(root)), shared)
    found = control(run, root).resume()
    assert found is not None and found.number == wanted


@pytest.mark.parametrize("changed", [{"run": "run-b"}, {"expires_at": 1.0}], ids=["another run", "expired"])
def test_what_is_not_for_it_does_not_hide_its_own(run: Path, root: Path, changed: dict[str, object]) -> None:
    """Two runs may share a folder."""
    own = lay(RunDirectory(str(run)).resume, 7)
    lay(shared_resume(str(root)), 8, **changed)
    assert control(run, root).resume() == (own if "run" in changed else None)


@pytest.mark.parametrize("damage", [open_to_others, linked])
def test_what_others_could_have_written_is_not_believed(run: Path, root: Path, damage: object) -> None:
    """A shared volume is where others write."""
    path = shared_resume(str(root))
    lay(path, 7)
    damage(Path(path))  # type: ignore[operator]
    assert control(run, root).resume() is None
