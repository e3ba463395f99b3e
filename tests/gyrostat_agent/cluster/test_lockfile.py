"""The lease as a file: one holder a term, whoever races, stops half way, or writes late."""

import json
import os
import threading
from pathlib import Path

import pytest

from gyrostat_agent.cluster.lease import Holding, LeaseError, Wish
from gyrostat_agent.cluster.lockfile import FileLease


@pytest.fixture
def root(tmp_path: Path) -> str:
    path = tmp_path / "检查点 of a run"
    path.mkdir(mode=0o700)
    return str(path)


def folder(root: str) -> Path:
    return Path(root) / ".gyrostat" / "run-r"


def made(root: str) -> None:
    """The folder, as an agent makes it."""
    for one in (folder(root).parent, folder(root)):
        one.mkdir(mode=0o700)


def test_two_runs_in_one_folder_have_a_leader_each(root: str) -> None:
    """Many runs keep their checkpoints in one place."""
    assert FileLease(root, "a").try_take(Holding(), "node-0", "") is not None
    assert FileLease(root, "b").who() == Holding()
    assert oct((Path(root) / ".gyrostat").stat().st_mode)[-3:] == "700"


def test_it_is_taken_renewed_and_given_back(root: str) -> None:
    """What one writes another reads."""
    ours, theirs = FileLease(root, "r"), FileLease(root, "r")
    assert theirs.who() == Holding()
    held = ours.try_take(Holding(), "a", "10.0.0.1:9468")
    assert held == theirs.who() == Holding(1, "a", "10.0.0.1:9468", 1)
    renewed = ours.renew(held)
    assert renewed == theirs.who() == held._replace(beat=2)
    ours.release(renewed, "b")
    assert theirs.who() == Holding(1, "", "", 3, "b")
    theirs.prefer(Wish("b", 4))
    assert ours.preferred() == Wish("b", 4)


def race(root: str, seen: Holding, node: str, found: list[Holding | None]) -> None:
    """One of those who would lead."""
    found.append(FileLease(root, "r").try_take(seen, node, ""))


def test_of_many_who_race_for_a_term_one_has_it(root: str) -> None:
    """Term after term, eight at once."""
    seen = Holding()
    for term in range(1, 11):
        found: list[Holding | None] = []
        racers = [threading.Thread(target=race, args=(root, seen, f"n{n}", found)) for n in range(8)]
        for racer in racers:
            racer.start()
        for racer in racers:
            racer.join()
        won = [one for one in found if one is not None]
        assert len(won) == 1 and won[0].term == term, found
        seen = FileLease(root, "r").who()
        assert seen == won[0]
    assert len(list(folder(root).glob("*.claim"))) <= 2, "claims of terms long gone are let go"
    assert not list(folder(root).glob(".*draft"))


def test_whoever_died_between_claim_and_word_stops_nobody(root: str) -> None:
    """Its term is passed over the next time."""
    first = FileLease(root, "r")
    held = first.try_take(Holding(), "a", "")
    assert held is not None
    os.link(folder(root) / "leader.1.claim", folder(root) / "leader.2.claim")  # claimed, and nothing more
    other = FileLease(root, "r")
    assert other.try_take(other.who(), "b", "") is None
    taken = other.try_take(other.who(), "b", "")
    assert taken is not None and taken.term == 3
    assert first.renew(held) is None


def test_a_late_word_of_an_old_leader_is_written_over(root: str) -> None:
    """The newer one's next beat puts it right, and the older finds that it leads no more."""
    old, new = FileLease(root, "r"), FileLease(root, "r")
    first = old.try_take(Holding(), "a", "")
    second = new.try_take(new.who(), "b", "")
    assert first is not None and second is not None
    (folder(root) / "leader.json").write_text(json.dumps(first._asdict()))  # it was stopped right before this rename
    renewed = new.renew(second)
    assert renewed == new.who()
    assert old.renew(first) is None
    old.release(first)
    assert new.who() == renewed, "and gives nothing back that is not its own"


def test_whoever_takes_too_long_has_not_taken_it(root: str) -> None:
    """A disk that hung in the middle: another may lead by now."""
    times = iter([0.0, 7.5])
    assert FileLease(root, "r", lambda: next(times)).try_take(Holding(), "a", "") is None


def test_what_has_changed_since_is_not_taken(root: str) -> None:
    """Taken on the condition that it still says what was seen."""
    lease = FileLease(root, "r")
    held = lease.try_take(Holding(), "a", "")
    assert held is not None
    lease.renew(held)
    assert FileLease(root, "r").try_take(held, "b", "") is None


@pytest.mark.parametrize("said", ["", "{", "[]", '{"term": -1, "beat": 0}', '{"term": 9e99, "beat": 0}', '{"term": 1}'])
def test_what_cannot_be_read_is_told_and_not_guessed(root: str, said: str) -> None:
    """A lease that is damaged is nobody's, until somebody looks."""
    made(root)
    (folder(root) / "leader.json").write_text(said)
    with pytest.raises(LeaseError, match=r"leader\.json cannot be read"):
        FileLease(root, "r").who()


@pytest.mark.parametrize("up", [0, 1], ids=["its own", "the one above"])
def test_a_folder_that_others_may_write_is_not_believed(root: str, up: int) -> None:
    """Else anybody could make themselves the leader."""
    made(root)
    (folder(root), folder(root).parent)[up].chmod(0o777)
    with pytest.raises(LeaseError, match="chmod"):
        FileLease(root, "r").who()


def test_a_folder_that_is_gone_is_told(root: str) -> None:
    """The store is away: nobody knows who leads."""
    lease = FileLease(root, "r")
    Path(root).chmod(0o500)
    try:
        if os.geteuid() == 0:
            (Path(root) / ".gyrostat").write_text("a file where the folder should be")
        with pytest.raises(LeaseError):
            lease.try_take(Holding(), "a", "")
    finally:
        Path(root).chmod(0o700)


def test_a_store_that_began_anew_counts_on(root: str) -> None:
    """The folder was cleaned: whoever knows of term 7 takes the eighth, or nothing it does would ever be allowed."""
    taken = FileLease(root, "r").try_take(Holding(), "a", "", least=7)
    assert taken is not None and taken.term == 8
