"""The ledger's file: written whole or not at all, believed only where nobody else could have written it."""

import os
from pathlib import Path

import pytest

from gyrostat_agent import ledgerfile
from gyrostat_agent.errors import TemporaryError

FACTS = {"version": 1, "next_directive": 4, "run": "läuft"}


def test_what_was_written_is_read(tmp_path: Path) -> None:
    """With the journal's head beside the facts; the folder is ours alone and holds nothing else."""
    ledgerfile.write(str(tmp_path), FACTS, "7:ab")
    assert ledgerfile.read(str(tmp_path)) == ({**FACTS, "journal_head": "7:ab"}, "")
    assert os.listdir(tmp_path / ".gyrostat") == ["ledger.json"]
    assert (tmp_path / ".gyrostat").stat().st_mode & 0o777 == 0o700
    assert os.stat(ledgerfile.path_of(str(tmp_path))).st_mode & 0o777 == 0o600


def test_none_is_no_fault(tmp_path: Path) -> None:
    """A first life has no ledger, and that is not to be distrusted."""
    assert ledgerfile.read(str(tmp_path)) == (None, "")


def test_the_newest_replaces_the_one_before(tmp_path: Path) -> None:
    """A second writing is read whole."""
    ledgerfile.write(str(tmp_path), {"long": "x" * 10_000}, "1:")
    ledgerfile.write(str(tmp_path), FACTS, "2:")
    assert ledgerfile.read(str(tmp_path))[0] == {**FACTS, "journal_head": "2:"}


DAMAGED = {
    "empty": "", "cut off": '{"version": 1, "runs', "a list": "[1]", "nothing": "null", "text": '"x"',
    "no text": "\xff", "brackets": "[" * 100_000,
    "nested": '{"a": ' + "[" * 300 + "]" * 300 + "}", "NaN": '{"version": NaN}',
    "infinite": '{"version": -Infinity}', "beyond floats": '{"version": 1e999}', "half a letter": '{"run": "\\ud800"}',
    "endless digits": '{"version": ' + "9" * 5000 + "}",
}  # fmt: skip


@pytest.mark.parametrize("text", DAMAGED.values(), ids=DAMAGED)
def test_damage_is_said_with_the_file(tmp_path: Path, text: str) -> None:
    """What is no ledger gives no facts, but a reason that names the file."""
    (tmp_path / ".gyrostat").mkdir(0o700)
    file = tmp_path / ".gyrostat" / "ledger.json"
    file.write_bytes(text.encode("latin-1"))
    file.chmod(0o600)
    facts, why = ledgerfile.read(str(tmp_path))
    assert facts is None and str(file) in why


def test_one_that_others_could_have_written(tmp_path: Path) -> None:
    """Is not believed, whatever it says."""
    ledgerfile.write(str(tmp_path), FACTS, "")
    os.chmod(ledgerfile.path_of(str(tmp_path)), 0o666)
    facts, why = ledgerfile.read(str(tmp_path))
    assert facts is None and "0666" in why


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    """Raises what the loop waits out: what is not in the ledger must not be done."""
    (tmp_path / ".gyrostat").write_text("a file")
    with pytest.raises(TemporaryError, match="the ledger cannot be written"):
        ledgerfile.write(str(tmp_path), FACTS, "")


def test_a_link_is_not_written_through(tmp_path: Path) -> None:
    """A draft that somebody laid there as a link leads nowhere."""
    (tmp_path / ".gyrostat").mkdir(0o700)
    (tmp_path / ".gyrostat" / ".ledger.draft").symlink_to(tmp_path / "victim")
    with pytest.raises(TemporaryError):
        ledgerfile.write(str(tmp_path), FACTS, "")
    assert not (tmp_path / "victim").exists()


def test_what_somebody_else_wrote_is_not_overwritten(tmp_path: Path) -> None:
    """Two runs in one folder: each would take the other's numbers and budgets for its own after a restart."""
    root = str(tmp_path)
    ours = ledgerfile.write(root, FACTS, "1:")
    ours = ledgerfile.write(root, FACTS, "2:", last=ours)
    ledgerfile.write(root, {**FACTS, "run": "another"}, "1:")
    with pytest.raises(TemporaryError, match="another agent is at work in this folder"):
        ledgerfile.write(root, FACTS, "3:", last=ours)
    assert ledgerfile.read(root)[0] == {**FACTS, "run": "another", "journal_head": "1:"}


def test_one_that_was_taken_away_is_written_again(tmp_path: Path) -> None:
    """A folder that was cleared is nobody else's."""
    root = str(tmp_path)
    ours = ledgerfile.write(root, FACTS, "1:")
    os.unlink(ledgerfile.path_of(root))
    ledgerfile.write(root, FACTS, "2:", last=ours)
    assert ledgerfile.read(root)[0] == {**FACTS, "journal_head": "2:"}
