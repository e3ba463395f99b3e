"""EventLogs: TensorBoard event files as a source of the agent, from the first row to the incident."""

import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
from agent_runs import Bench
from eventbytes import BEGINNING, field, header, life, put, run, scalar

from gyrostat.wire import Record
from gyrostat_agent import failpoints
from gyrostat_agent.sources.eventlogs import EventLogs
from gyrostat_agent.sources.logs.logfiles import LogFiles
from gyrostat_rules.inputs import Batch, Item, SourceState

NOW = 1_900_000_000.0
DATA = Path(__file__).parent / "data"


class Dead(BaseException):
    """The agent's process ends here."""


def places(items: list[Item]) -> list[tuple[int, int]]:
    """Segment and step of each record."""
    return [(one.segment, one.step) for one in items if isinstance(one, Record)]


def told(items: list[Item], name: str) -> list[float]:
    """All values of a name."""
    return [one.values[name] for one in items if isinstance(one, Record) and name in one.values]


def said(items: list[Item]) -> list[tuple[str, str]]:
    """What was said of the sources."""
    return [(one.state, one.detail) for one in items if isinstance(one, SourceState)]


def test_a_true_folder_is_told_as_of_now_and_once(tmp_path: Path) -> None:
    """TRL's own file: under canonical names, of rank 0 of the trainer; and what it was read as."""
    put(tmp_path, 1, (DATA / "trl-grpo-qwen3_moe.tfevents").read_bytes())
    source = EventLogs([str(tmp_path)], {})
    found = source.drain(NOW)
    records = [one for one in found if isinstance(one, Record)]
    assert [(one.step, one.time, one.role, one.rank) for one in records] == [
        (s, NOW, "trainer", 0) for s in range(1, 11)
    ]
    assert all({"loss", "grad_norm", "entropy", "reward"} <= one.values.keys() for one in records)
    assert said(found) == [("fresh", "read as TensorBoard event files, 1 file")]
    assert source.drain(NOW + 1) == [] and not source.behind


@pytest.mark.parametrize("alone", [False, True], ids=["folder", "file"])
def test_what_is_not_there_yet_is_said_once_and_read_when_it_comes(alone: bool, tmp_path: Path) -> None:
    """A trainer makes its folder when it has something to draw; a path is followed by one source, never by two."""
    folder = tmp_path / "runs"
    path = str(folder / "events.out.tfevents.1800000001.host.1.0" if alone else folder)
    texts, events = LogFiles([path], {}), EventLogs([path], {})
    first = texts.drain(NOW) + events.drain(NOW)
    assert said(first) == [("damaged", f"{path}: No such file or directory")]
    assert texts.drain(NOW) + events.drain(NOW) == []
    put(folder, 1, run(range(1, 3)))
    found = texts.drain(NOW) + events.drain(NOW)
    assert places(found) == [(0, 1), (0, 2)]
    assert said(found) == [("fresh", "read as TensorBoard event files, 1 file")]
    for name in list(folder.iterdir()):
        name.unlink()
    folder.rmdir()
    assert said(texts.drain(NOW) + events.drain(NOW)) == [("damaged", f"{path}: No such file or directory")]


def test_an_empty_folder_is_not_called_read(tmp_path: Path) -> None:
    """Silence must never read as clean."""
    assert said(EventLogs([str(tmp_path)], {}).drain(NOW)) == [("fresh", "no TensorBoard event file lies in it yet")]


def test_what_grows_is_told_to_the_step(tmp_path: Path) -> None:
    """Wherever a flush cuts a step: its parts come as of the same step, each value once, none left out."""
    data = run(range(1, 8))
    path = put(tmp_path, 1, b"")
    source, found = EventLogs([str(tmp_path)], {}), list[Item]()
    for end in range(0, len(data) + 100, 100):
        path.write_bytes(data[:end])
        found += source.drain(NOW)
    values = sorted(v for one in found if isinstance(one, Record) for v in one.values.values())
    assert values == sorted(step + i / 4 for step in range(1, 8) for i in range(3))
    assert places(found) == sorted(places(found)) and {p[0] for p in places(found)} == {0}


def test_a_second_life_goes_back_once(tmp_path: Path) -> None:
    """It begins a file of its own, behind where the first had come: another segment, in which each step comes once."""
    put(tmp_path, 1, life(range(1, 9), 0))
    source = EventLogs([str(tmp_path)], {})
    source.drain(NOW)
    second = put(tmp_path, 2, life(range(5, 8), 100))
    found = source.drain(NOW)
    assert places(found) == [(1, 5), (1, 6), (1, 7)]
    assert said(found) == [("fresh", "read as TensorBoard event files, 2 files")]
    second.write_bytes(life(range(5, 11), 100))
    assert places(source.drain(NOW)) == [(1, 8), (1, 9), (1, 10)]


def test_a_file_that_is_cut_short_and_goes_on_is_another_segment(tmp_path: Path) -> None:
    """What it held before is not told twice; what is written then is told."""
    path = put(tmp_path, 1, life(range(1, 9), 0))
    source = EventLogs([str(tmp_path)], {})
    source.drain(NOW)
    path.write_bytes(life(range(1, 4), 0) + life(range(4, 7), 100)[len(BEGINNING) :])
    assert places(source.drain(NOW)) == [(1, 4), (1, 5), (1, 6)]


@pytest.mark.parametrize("point", ["batch.drained", "batch.decided", "turn.committed"])
def test_an_agent_that_is_killed_is_followed_by_one_that_goes_on(
    bench: Bench, point: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every number is in the journal once, a step that was half there too, and a life that began meanwhile is one."""
    path = put(tmp_path / "runs", 1, life(range(1, 6), 0))
    logs = (str(tmp_path / "runs"),)
    bench.agent(logs=logs).once()
    more = life(range(6, 9), 5, ("train/loss", "train/grad_norm"))[len(BEGINNING) :]
    path.write_bytes(life(range(1, 6), 0) + more[:-20])

    def die(name: str) -> None:
        if name == point:
            raise Dead

    monkeypatch.setattr(failpoints, "reach", die)
    dying = bench.agents[-1]
    with pytest.raises(Dead):
        dying.once()
    dying.abandon()
    monkeypatch.undo()
    path.write_bytes(life(range(1, 6), 0) + more)
    put(tmp_path / "runs", 2, life(range(3, 6), 100))
    last = bench.agent(logs=logs)
    while last.once():
        bench.now += 1.0
    given = [turn.given for turn in last.journal.turns()]
    records = [one for batch in given if isinstance(batch, Batch) for one in batch.items if isinstance(one, Record)]
    assert [(r.segment, r.step) for r in records if "loss" in r.values] == [
        *((0, step) for step in range(1, 9)), (1, 3), (1, 4), (1, 5),
    ]  # fmt: skip
    assert [r.step for r in records if "grad_norm" in r.values] == [6, 7, 8]
    assert len({r.incarnation for r in records}) == 1


def test_a_curve_that_is_flushed_late_is_no_jump_back(tmp_path: Path) -> None:
    """add_scalars has a writer for each: told as of the newest step, what is not finite above all."""
    put(tmp_path, 1, life(range(1, 9), 0))
    source = EventLogs([str(tmp_path)], {})
    source.drain(NOW)
    put(tmp_path / "best", 2, BEGINNING + scalar(6, "kl", math.nan, 1.8e9 + 5) + scalar(7, "kl", 0.5, 1.8e9 + 6))
    found = source.drain(NOW)
    assert places(found) == [(0, 8)] and math.isnan(told(found, "best/kl")[0])
    assert "some numbers told as of a later step than their own" in said(found)[-1][1]
    with (tmp_path / "events.out.tfevents.1800000001.host.1.0").open("ab") as more:
        more.write(life(range(9, 11), 8)[len(BEGINNING) :])
    assert places(source.drain(NOW)) == [(0, 9), (0, 10)]


def test_of_old_numbers_that_come_late_only_what_is_not_finite_is_told(tmp_path: Path) -> None:
    """Two writers of one tag, or what was written before the run went back: nobody's newest value is overwritten."""
    put(tmp_path, 1, life(range(1, 9), 0) + life(range(4, 6), 20)[len(BEGINNING) :])
    source = EventLogs([str(tmp_path)], {})
    assert places(source.drain(NOW))[-2:] == [(1, 4), (1, 5)]
    undone = [scalar(9, tag, 9.0, 1.8e9 + 8.5) for tag in ("train/loss", "train/kl")]
    passed = [scalar(3, "train/loss", value, 1.8e9 + 20.5) for value in (3.5, math.inf)]
    put(tmp_path, 2, BEGINNING + b"".join(undone + passed[:1]))
    assert places(source.drain(NOW)) == []
    put(tmp_path, 2, BEGINNING + b"".join(undone + passed))
    found = source.drain(NOW)
    assert (places(found), told(found, "loss")) == ([(1, 5)], [math.inf])


def test_a_number_that_a_step_has_told_stays(tmp_path: Path) -> None:
    """Drawn a second time, under its tag or another of the same measure: only a NaN takes its place."""
    path = put(tmp_path, 1, life(range(1, 4), 0))
    source = EventLogs([str(tmp_path)], {})
    source.drain(NOW)
    for value, news in ((9.0, []), (math.inf, [math.inf])):
        with path.open("ab") as more:
            more.write(scalar(3, "train/loss", value, 1.8e9 + 3))
        assert told(source.drain(NOW), "loss") == news


def test_an_evaluation_that_is_flushed_late_is_kept(tmp_path: Path) -> None:
    """It bears the tag of the training loss, which has come further: it is no old value of that."""
    put(tmp_path / "train", 1, life(range(1, 9), 0, ("loss",)))
    put(tmp_path / "validation", 2, BEGINNING)
    source = EventLogs([str(tmp_path)], {})
    source.drain(NOW)
    put(tmp_path / "validation", 2, BEGINNING + scalar(6, "loss", 0.25, 1.8e9 + 5.5))
    found = source.drain(NOW)
    assert (places(found), told(found, "eval/loss")) == ([(0, 8)], [0.25])


def test_two_counts_in_one_file_are_one_run(tmp_path: Path) -> None:
    """Steps beside epochs: an epoch is told as of the step it came behind."""
    rows = [
        scalar(step, "train/loss", step, 1.8e9 + step)
        + (scalar(step // 10, "epoch/score", step, 1.8e9 + step + 0.5) if step % 10 == 0 else b"")
        for step in range(1, 51)
    ]
    put(tmp_path, 1, BEGINNING + b"".join(rows))
    found = EventLogs([str(tmp_path)], {}).drain(NOW)
    assert told(found, "loss") == list(range(1, 51)) and {segment for segment, _ in places(found)} == {0}
    scores = [(one.step, value) for one in found if isinstance(one, Record) for n, value in one.values.items()
              if one.step == value and n != "loss"]  # fmt: skip
    assert scores == [(step, step) for step in range(10, 51, 10)]


def test_one_number_at_a_step_far_off_blinds_nobody(tmp_path: Path) -> None:
    """Drawn over seconds in place of steps, again and again: the loss goes on being told, step by step."""
    rows = [
        scalar(step, "train/loss", step, 1.8e9 + step)
        + (scalar(1_800_000_000 + step, "clock", 1.0, 1.8e9 + step + 0.5) if step in (10, 30) else b"")
        for step in range(1, 51)
    ]
    put(tmp_path, 1, BEGINNING + b"".join(rows))
    found = EventLogs([str(tmp_path)], {}).drain(NOW)
    assert told(found, "loss") == list(range(1, 51))
    assert max(segment for segment, _ in places(found)) == 1 and places(found)[-1] == (1, 50)


def test_how_a_folder_fares_is_said_when_it_changes(tmp_path: Path) -> None:
    """Names that nobody knows once 20 steps came, damage by its order, what cannot be read with the reason."""
    path = put(tmp_path, 1, life(range(1, 25), 0, ("train/loss", "my/own")))
    source = EventLogs([str(tmp_path)], {})
    read = "read as TensorBoard event files, 1 file"
    assert said(source.drain(NOW)) == [("fresh", f"{read}; under their own names: my/own")]
    with path.open("ab") as more:
        more.write(b"junk" * 100 + life(range(25, 27), 24)[len(BEGINNING) :])
    found = source.drain(NOW)
    assert places(found) == [(0, 25), (0, 26)]
    assert said(found) == [("fresh", f"{read}, damaged in one place; under their own names: my/own")]
    os.mkfifo(tmp_path / "events.out.tfevents.9.pipe")
    [(word, detail)] = said(source.drain(NOW))
    assert (word, detail) == ("damaged", f"{tmp_path}/events.out.tfevents.9.pipe: not a regular file")
    assert source.drain(NOW) == []


def test_a_backlog_is_told_in_passes(bench: Bench, tmp_path: Path) -> None:
    """None of which is long; and the loop does not sleep between them, though one may have no news."""
    image = b"\x09" + bytes(8) + field(4, b"\x01" * 1_000_000)
    images = (header(len(image)) + image + bytes(4)) * 20
    put(tmp_path / "runs", 1, BEGINNING + images + life(range(1, 701), 0)[len(BEGINNING) :])
    agent = bench.agent(logs=(str(tmp_path / "runs"),))
    passes = 0
    while agent.once():
        passes += 1
    batches = [turn.given for turn in agent.journal.turns() if isinstance(turn.given, Batch)]
    counts = [len(places(list(batch.items))) for batch in batches]
    assert sum(counts) == 700 and max(counts) <= 501 and passes > len(batches)


def test_a_format_is_of_no_concern_to_event_files(bench: Bench, tmp_path: Path) -> None:
    """--log-format is what writes the logs of text beside them."""
    put(tmp_path / "runs", 1, life(range(1, 4), 0))
    agent = bench.agent(logs=(str(tmp_path / "runs"),), log_format="verl")
    agent.once()
    assert agent.engine.state.processes["trainer/0"].last_step == 3


def test_a_trainer_that_draws_alone_has_its_nan_found(tmp_path: Path) -> None:
    """``gyrostat run --log FOLDER``: the folder comes while it runs, and the incident is in its history."""
    rows = b"".join(scalar(s, "train/grad_norm", 0.2 if s < 25 else math.nan) for s in range(1, 27))
    (tmp_path / "made").write_bytes(BEGINNING + rows)
    script = tmp_path / "train.py"
    script.write_text(
        f"import os, shutil\nos.makedirs({str(tmp_path / 'runs' / 'a')!r})\n"
        f"shutil.copy({str(tmp_path / 'made')!r}, {str(tmp_path / 'runs' / 'a' / 'events.out.tfevents.1.h')!r})\n"
    )
    base = [sys.executable, "-m", "gyrostat_agent"]
    ran = subprocess.run(
        [*base, "run", "--run-dir", str(tmp_path / "run"), "--log", str(tmp_path / "runs"), "--listen", "", "--",
         sys.executable, str(script)], capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    listed = subprocess.run([*base, "incidents", str(tmp_path / "run")], capture_output=True, text=True, timeout=60)
    assert "nonfinite: grad_norm is nan" in listed.stdout and "stall" not in listed.stdout
