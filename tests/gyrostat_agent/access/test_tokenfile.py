"""The token file: made once, believed only where nobody else can have it, changed as a whole."""

import os
import stat
from pathlib import Path

import pytest

from gyrostat_agent.access import tokenfile
from gyrostat_agent.errors import SetupError

GOOD = "0123456789abcdef" * 4


def laid(path: Path, text: str = GOOD, mode: int = 0o600) -> str:
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def test_one_is_made_and_kept(tmp_path: Path) -> None:
    """32 random bytes as text, for its owner alone whatever the umask; a restart does not change it."""
    path = str(tmp_path / "control.token")
    before = os.umask(0)
    tokenfile.make(path)
    os.umask(before)
    token = tokenfile.read(path)
    tokenfile.make(path)
    assert len(bytes.fromhex(token.decode())) == 32 and tokenfile.read(path) == token
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600 and os.listdir(tmp_path) == ["control.token"]


def test_rotation_gives_another(tmp_path: Path) -> None:
    """Never the same twice, and as private as before; no draft is left."""
    path = str(tmp_path / "token")
    seen = set()
    for _ in range(5):
        tokenfile.rotate(path)
        seen.add(tokenfile.read(path))
    assert len(seen) == 5 and os.listdir(tmp_path) == ["token"]
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660, 0o622, 0o601], ids=oct)
def test_one_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    """With the command that mends it, which can be typed as it stands, spaces and all."""
    path = laid(tmp_path / "my token", mode=mode)
    with pytest.raises(SetupError) as refused:
        tokenfile.read(path)
    assert f"{mode:04o}" in str(refused.value) and f"chmod 600 '{path}'" in str(refused.value)
    os.chmod(path, 0o600)
    assert tokenfile.read(path) == GOOD.encode()


def test_a_link_is_refused(tmp_path: Path) -> None:
    """Whoever may change where it leads may choose the token."""
    laid(tmp_path / "real")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(SetupError, match="link; give the file itself"):
        tokenfile.read(str(tmp_path / "link"))


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo], ids=["folder", "pipe"])
def test_what_is_no_file_is_refused(tmp_path: Path, make: object) -> None:
    """And does not hang."""
    path = str(tmp_path / "token")
    make(path)  # type: ignore[operator]
    with pytest.raises(SetupError, match="not a regular file"):
        tokenfile.read(path)


def test_somebody_elses_is_refused(tmp_path: Path) -> None:
    """Root's neither: they know it."""
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    path = laid(tmp_path / "token")
    os.chown(path, 4711, -1)
    with pytest.raises(SetupError, match=r"belongs to UID 4711.*install -m 600"):
        tokenfile.read(path)


@pytest.mark.parametrize(
    "text", ["", "\n", "secret", "a" * 31, "two words of more than 32 characters in all", "ü" * 40, "a\tb" * 20],
    ids=["empty", "blank", "short", "31", "words", "not ASCII", "tab"],
)  # fmt: skip
def test_one_that_can_be_guessed_is_refused(tmp_path: Path, text: str) -> None:
    """A password is no token; the error shows how one is made, and nothing of what is there."""
    path = laid(tmp_path / "token", text)
    with pytest.raises(SetupError) as refused:
        tokenfile.read(path)
    assert f"gyrostat token rotate --control-token {path}" in str(refused.value)
    assert not text.strip() or text.strip() not in str(refused.value)


def test_a_missing_one_is_said(tmp_path: Path) -> None:
    """With how to make it."""
    with pytest.raises(SetupError, match="there is no such token file; make one: gyrostat token rotate"):
        tokenfile.read(str(tmp_path / "none"))


def test_a_slip_does_not_cost_a_file(tmp_path: Path) -> None:
    """What holds something else than a token is not replaced by one."""
    other = laid(tmp_path / "notes", "milk\neggs\n")
    with pytest.raises(SetupError, match="something else than a token"):
        tokenfile.rotate(other)
    with pytest.raises(SetupError, match="give another path"):
        tokenfile.rotate(str(tmp_path))
    assert Path(other).read_text() == "milk\neggs\n"


def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    """Said, with the path; what was there stays."""
    with pytest.raises(SetupError, match="no token can be written there"):
        tokenfile.rotate(str(tmp_path / "no such folder" / "token"))
