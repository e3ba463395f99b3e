"""The command that writes the corpus: splits that do not overlap, a stream, and mistakes said in words."""

import io
import json
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import generate
import pytest
from families import FAULTY, HEALTHY, JUDGED_ONLY
from split import CALIBRATE, JUDGE, SPLITS, Planned, healthy, planned, stretch


def test_no_seed_is_in_two_splits() -> None:
    """What thresholds were chosen on is never what they are judged by."""
    seeds = {
        (split, part): {one.seed for one in islice(runs, 3000)}
        for split in SPLITS
        for part, runs in (("runs", planned(split, 3000)), ("stretch", stretch(split)))
    }
    every = [seed for part in seeds.values() for seed in part]
    assert len(every) == len(set(every)) == 12_000


def test_some_families_are_judged_only() -> None:
    """The judge sees all families, the other split all but two; both halve their runs between ill and well."""
    seen = {split: Counter(one.family for one in planned(split, 400)) for split in SPLITS}
    assert seen[JUDGE].keys() == HEALTHY.keys() | FAULTY.keys()
    assert seen[JUDGE].keys() - seen[CALIBRATE].keys() == JUDGED_ONLY
    for split in SPLITS:
        assert sum(seen[split][name] for name in FAULTY) == 200
        assert min(seen[split].values()) >= 6


@pytest.mark.parametrize(("steps", "runs"), [(1000, 1), (1001, 2), (300_000, 300)])
def test_a_long_stretch_is_as_long_as_asked(steps: int, runs: int) -> None:
    """Healthy runs alone, as many as it takes."""
    wanted = list(healthy(JUDGE, steps, 1000))
    assert len(wanted) == runs
    assert {one.family for one in wanted} <= HEALTHY.keys()


def test_the_same_arguments_give_the_same_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A corpus need not be kept: it can be made again."""
    files = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for file in files:
        assert generate.main(["--split", "judge", "--runs", "6", "--steps", "400", "--out", str(file)]) == 0
    assert files[0].read_bytes() == files[1].read_bytes()
    raws = [json.loads(line) for line in files[0].read_text("utf-8").splitlines()]
    assert {raw["split"] for raw in raws} == {"judge"}
    assert len({raw["group"] for raw in raws}) == 6
    assert "6 runs" in capsys.readouterr().err


def test_runs_are_written_one_by_one() -> None:
    """A corpus may be longer than memory: the second run is not begun before the first is written."""
    out, written = io.StringIO(), list[int]()

    def wanted() -> Iterator[Planned]:
        for one in planned(JUDGE, 3):
            written.append(out.tell())
            yield one

    assert generate.write(out, wanted(), JUDGE, 200)[0] == 3
    assert written == sorted(set(written))


def test_a_long_stretch_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    """To standard output where no file is named, healthy throughout."""
    assert generate.main(["--split", "judge", "--long-healthy", "900", "--steps", "400"]) == 0
    said = capsys.readouterr()
    assert {json.loads(line)["healthy"] for line in said.out.splitlines()} == {True}
    assert "3 runs, 1200 steps" in said.err


def test_families_and_deadlines_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever doubts a case can read what it is and why it is due when it is."""
    assert generate.main(["--list"]) == 0
    said = capsys.readouterr().out
    assert all(f"\n{name} (" in f"\n{said}" for name in (*HEALTHY, *FAULTY))
    assert "judge only" in said
    assert "nan_inf: due +1 rows" in said


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "give --split"),
        (["--split", "test"], "calibrate"),
        (["--split", "judge", "--runs", "0"], "at least 1"),
        (["--split", "judge", "--steps", "50"], "at least 400"),
        (["--split", "judge", "--long-healthy", "-5"], "whole number"),
    ],
    ids=["no split", "unknown split", "no runs", "few steps", "negative"],
)
def test_what_cannot_be_asked_for(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Status 2, and what to give instead."""
    with pytest.raises(SystemExit) as stopped:
        generate.main(arguments)
    assert stopped.value.code == 2
    assert says in capsys.readouterr().err


def test_a_file_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Named, with the reason, and no stack trace."""
    assert generate.main(["--split", "judge", "--runs", "1", "--out", str(tmp_path)]) == 2
    assert f"generate: {tmp_path}: " in capsys.readouterr().err
