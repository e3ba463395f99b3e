"""Rights: only what this user alone could have written is believed, and the reason is said."""

import os
from pathlib import Path

import pytest

from gyrostat.wire import RightsError
from gyrostat.wire.rights import check_folder, read_trusted


@pytest.fixture
def file(run: Path) -> Path:
    """A file that can be trusted."""
    path = run / "directive"
    path.write_bytes(b"word")
    path.chmod(0o600)
    return path


def test_a_file_of_our_own_is_read(file: Path) -> None:
    """What we alone could have written is read whole, up to the limit."""
    assert read_trusted(str(file), 4) == b"word"
    with pytest.raises(RightsError, match="has more than 3 bytes"):
        read_trusted(str(file), 3)


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666], ids=oct)
def test_what_others_may_write_is_not_read(file: Path, mode: int) -> None:
    """A group- or world-writable file or folder is refused, with its mode and what to do."""
    file.chmod(mode)
    with pytest.raises(RightsError, match=f"mode {mode:04o}: others may write it; chmod go-w it"):
        read_trusted(str(file), 9)
    file.parent.chmod(mode | 0o700)
    with pytest.raises(RightsError, match="chmod go-w"):
        check_folder(str(file.parent))


def test_links_fifos_and_folders_are_not_read(file: Path, run: Path) -> None:
    """Only regular files are read; a FIFO that nobody writes to does not hold us up."""
    (run / "link").symlink_to(file)
    os.mkfifo(run / "fifo", 0o600)
    for name in ("link", "fifo", "."):
        with pytest.raises(OSError, match=r"symbolic link|not a regular file"):
            read_trusted(str(run / name), 9)


def test_a_link_to_a_folder_is_no_folder(run: Path, tmp_path: Path) -> None:
    """A folder that was replaced by a link is refused: it leads where somebody else wants."""
    (tmp_path / "link").symlink_to(run)
    with pytest.raises(RightsError, match="is not a folder; give a real one, not a link"):
        check_folder(str(tmp_path / "link"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away: run as root to check foreign owners")
def test_what_another_user_owns_is_not_read(file: Path) -> None:
    """A file or folder of another UID is refused, with both UIDs."""
    os.chown(file, 1234, 1234)
    with pytest.raises(RightsError, match="belongs to UID 1234, not to UID 0 of this process"):
        read_trusted(str(file), 9)
    os.chown(file.parent, 1234, 1234)
    with pytest.raises(RightsError, match="belongs to UID 1234"):
        check_folder(str(file.parent))
