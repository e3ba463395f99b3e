"""Chaos on real runs: what is drawn, how it is judged, and a handful of draws really played."""

import json
import math
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from chaos import clockjump, disks, records
from chaos.blows import BLOWS
from chaos.campaign import Campaign, Job
from chaos.controls import Deaf, Harmful
from chaos.course import Told, best, reward, standing, told
from chaos.disturbances import DISTURBANCES
from chaos.draw import Draw, Due, decoded, drawn
from chaos.evidence import Evidence
from chaos.faults import FAMILIES, MOST, TURNED, Strike
from chaos.play import Played, command, plan_of
from chaos.rows import BEGIN, END, Row, RowsError, counted, markdown, read, wilson, write
from chaos.verdict import HELD, LOST, MENDED, WORSE, Facts, beside_its_twin, judged
from chaos_runs import main

from gyrostat import Knob, Telemetry
from gyrostat.wire import Directive, KnobChange, RunDirectory
from gyrostat.wire.frames import Kind, scan
from gyrostat_agent.demo.cases import Case, Deed
from gyrostat_agent.demo.scenarios import NOTHING, SCENARIOS

ROOT = Path(__file__).parents[2]
MANY = range(1000)


# -- the draw ------------------------------------------------------------------------------------------------


def test_a_seed_is_one_draw_in_every_process() -> None:
    """What failed can be played again from its number alone, whatever the hash seed of the interpreter."""
    asked = [sys.executable, str(ROOT / "benchmarks/chaos_runs.py"), "--list", "--seeds", "0-19", "--clean", "0"]
    said = [
        subprocess.run(asked, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONHASHSEED": seed})
        for seed in ("1", "2")
    ]
    assert said[0].stdout == said[1].stdout == "".join(f"{drawn(seed).line}\n" for seed in range(20))


def test_everything_is_drawn_and_nothing_that_cannot_be() -> None:
    """Each fault and disturbance comes up, two faults are of two kinds, and all of it lies within the run."""
    draws = [drawn(seed) for seed in MANY]
    assert {s.name for d in draws for s in d.faults} == set(FAMILIES)
    assert {u.name for d in draws for u in d.disturbances} == set(DISTURBANCES)
    assert {len(d.faults) for d in draws} == {0, 1, 2} and {d.ranks for d in draws} == {1, 2}
    for draw in draws:
        assert len({FAMILIES[s.name] for s in draw.faults}) == len(draw.faults), draw.line
        assert all(1 < u.step < draw.steps for u in draw.disturbances), draw.line
        assert all(s.step + 20 < draw.steps for s in draw.faults), draw.line
        assert draw.disturbances or draw.faults, draw.line
        assert decoded(draw.encode()) == draw


def test_every_founding_fault_can_be_drawn() -> None:
    """A scenario that is added is drawn too, or this says so."""
    assert set(FAMILIES) == {name for name, one in SCENARIOS.items() if one.fault != NOTHING}


def test_every_disturbance_has_somebody_who_brings_it_about() -> None:
    """From outside, by the trainer's own faults and options, or by the plan that its children read."""
    nothing = Draw(1, 1, 40, (), ())
    for name, row in DISTURBANCES.items():
        draw = nothing._replace(disturbances=(Due(name, 9, row.high),))
        planned = plan_of(draw) != plan_of(nothing)
        started = command(draw, Path(), beside=True) != command(nothing, Path(), beside=True)
        assert name in BLOWS or planned or started, name


def test_the_page_names_every_disturbance() -> None:
    """What is drawn stands in docs/chaos.md, in full or by its ending beside another of its kind."""
    page = (ROOT / "docs/chaos.md").read_text(encoding="utf-8")
    endings = {name: name.partition("_")[2] for name in DISTURBANCES}
    assert [name for name, end in endings.items() if f"`{name}`" not in page and f"`_{end}`" not in page] == []


def test_knobs_that_a_hand_turns_are_judged_within_the_trainers_bounds() -> None:
    """Every knob of a fault is looked at, and a healthy one is within."""
    pytest.importorskip("torch", reason="the reference trainer needs torch: pip install 'gyrostat[reference]'")
    from gyrostat_reference.faults import FAULTS
    from gyrostat_reference.knobs import LIMITS, KnobValues

    for name, turned in TURNED.items():
        assert set(turned) == set(FAULTS[SCENARIOS[name].fault].knobs)
    for knob, most in MOST.items():
        assert KnobValues()._asdict()[knob] <= most <= LIMITS[knob].high


# -- the verdict ---------------------------------------------------------------------------------------------

STEPS = tuple(Told(step, 0.95, 0.3, False) for step in range(1, 61))


def facts(
    word: str = "resolved", faults: Sequence[Strike] = (Strike("nan_data", 21),), steps: Sequence[Told] = STEPS,
    **more: Any,
) -> Facts:  # fmt: skip
    deed = Deed(1, more.get("remedy", "skip_data"), "allow", "done", 22, 33)
    cases = {"i0001": Case("nonfinite", word, 21, 22, 33, deeds={"i0001.1": deed})} if word else {}
    seen = Evidence(cases, more.get("pages", ()), "", more.get("faults_of_journal", ()), ())
    played = Played(more.get("status", 0), 1, tuple(steps), 60.0, more.get("gap", 2.0), False)
    due = tuple(more.get("disturbances", ()))
    return Facts(Draw(1, 1, 60, tuple(faults), due), played, seen, more.get("knobs", {}), more.get("wrong", ()))


@pytest.mark.parametrize(
    "given, word, why",
    [
        (facts(), MENDED, "skip_data (nonfinite): done"),
        (facts("held", pages=("step 30: i0001 held: ask",)), HELD, "i0001 (nonfinite) is held"),
        (facts("held"), LOST, "i0001 (nonfinite) is held"),
        (facts(status=1, steps=STEPS[:30]), LOST, "ended with 1 at step 30 of 60"),
        (facts("", [Strike("mismatch", 21)]), LOST, "no incident was opened"),
        (facts(knobs={"lr_scale": 100.0, "max_grad_norm": 1.0}, faults=[Strike("divergence", 21)]), LOST, "is 100"),
        (facts(steps=[*STEPS[:40], *(s._replace(reward=0.2) for s in STEPS[40:])]), LOST, "0.200"),
        (facts(faults=()), WORSE, "nothing was broken, and there was skip_data"),
        (facts(faults=(), disturbances=[Due("pod_killed", 9, 0.0)]), MENDED, "skip_data"),
        (facts("", ()), MENDED, "nothing had to be done"),
        (facts(faults_of_journal=("action i0001.1 was sent 2 times",)), WORSE, "sent 2 times"),
        (facts(wrong=("a second agent ended with 0",)), WORSE, "second agent"),
        (facts(gap=200.0), WORSE, "200 s between two steps"),
    ],
    ids=[
        "mended", "held with a page", "held and nobody asked", "died", "never found", "a knob stayed", "reward gone",
        "the healthy treated", "the pod killed", "nothing at all", "twice", "two agents", "held up",
    ],
)  # fmt: skip
def test_what_a_run_came_to(given: Facts, word: str, why: str) -> None:
    """Each way to end well or badly is told by its name, and why."""
    verdict = judged(given)
    assert verdict.word == word and why in verdict.why, verdict


def test_a_run_that_ends_worse_than_its_untreated_twin_was_made_worse() -> None:
    """Held is no harm where the twin is no better, and harm where it is; a mended run needs no twin."""
    held, mended = judged(facts("held", pages=("asked",))), judged(facts())
    assert beside_its_twin(held, 0.5, None).word == beside_its_twin(held, 0.5, 0.55).word == HELD
    assert beside_its_twin(held, 0.5, 0.9).word == beside_its_twin(held, None, 0.9).word == WORSE
    assert beside_its_twin(mended, 0.5, 0.9).word == MENDED


def test_steps_that_came_again_stand_as_they_were_last() -> None:
    """The reward is that of what was not undone; a step that was skipped and words in between are understood."""
    line = "step {:4d}  reward {}  entropy 0.2  loss +0.1  grad 1.0  0.4 s{}"
    lines = [line.format(1, 0.1, ""), "resumed", line.format(2, "nan", "  skipped"), line.format(1, 0.5, "")]
    steps = told(lines)
    assert [s.skipped for s in steps] == [False, True, False] and math.isnan(steps[1].reward)
    assert [(s.step, s.reward) for s in standing(steps)] == [(1, 0.5)] and reward(steps) == 0.5
    assert reward([]) is best([], 15) is None
    rewards = [0.0, 1.0, 1.0, 1.0, 1.0, 0.5, 0.5]
    assert best([Told(n, one, 0.2, False) for n, one in enumerate(rewards)], 6) == 0.9


# -- rows and table ------------------------------------------------------------------------------------------


def row(seed: int, verdict: str = MENDED, **more: Any) -> Row:
    fields = {"kind": "chaos", "mendable": True, "sent": 1, "why": "a | b", **more}
    return Row(
        seed=seed, draw=f"seed {seed}", verdict=verdict, reward=0.9, twin=None, steps=60, pods=1, gap=1.0, seconds=60.0,
        code="c", **fields,
    )  # fmt: skip


def test_the_bound_is_wilsons() -> None:
    """As in the literature: 97 of 100 is at least 91.5 %, nothing is nothing, and all of few is not all."""
    assert [round(wilson(*pair), 3) for pair in ((97, 100), (0, 0), (10, 10), (0, 10))] == [0.915, 0.0, 0.722, 0.0]


def test_rows_come_back_and_the_table_names_every_miss(tmp_path: Path) -> None:
    """What is counted, what could not be mended, and each miss with its why on one line."""
    rows = [row(0), row(1, HELD, mendable=False), row(2, LOST), row(0, kind="clean", sent=0)]
    write(tmp_path / "sub" / "chaos.json", rows)
    again = read(tmp_path / "sub" / "chaos.json")
    assert sorted(again) == sorted(rows) and read(tmp_path / "none.json") == []
    found = counted(again)
    assert (found["runs"], found["mended"], found["held"], found["lost"], found["mendable"]) == (3, 1, 1, 1, 2)
    assert found["clean_runs"] == 1 and found["clean_interventions"] == 0
    table = markdown(again)
    assert "| seed 1 | held | a / b |" in table and "| seed 2 | lost |" in table and "| seed 0 |" not in table
    (tmp_path / "bad.json").write_text("[]")
    with pytest.raises(RowsError, match="give another file, or delete it"):
        read(tmp_path / "bad.json")


def test_the_page_shows_what_was_measured() -> None:
    """Between its marks stands the table of the results that are checked in, word for word."""
    page = (ROOT / "docs/chaos.md").read_text(encoding="utf-8")
    shown = page.partition(BEGIN)[2].partition(END)[0].strip()
    assert shown == markdown(read(ROOT / "benchmarks/results/chaos.json"))


def test_what_the_campaign_cannot_use_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line, status 2, nothing played."""
    (tmp_path / "bad.json").write_text("[]")
    assert main(["--table", str(tmp_path / "bad.json")]) == 2
    assert "bad.json holds no results" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["--seeds", "9-3"])
    assert "give two whole numbers, as 0-99" in capsys.readouterr().err


def test_what_was_played_is_not_played_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what has no row is asked for; what needs a disk that cannot be mounted is said, not silently left out."""
    monkeypatch.setattr(disks, "possible", lambda: False)
    full = Draw(2, 1, 40, (), (Due("disk_full_run", 9, 3.0),))
    draws = [drawn(0), drawn(1)._replace(disturbances=()), full]
    campaign = Campaign(draws, [row(0)], tmp_path, tmp_path / "chaos.json")
    assert [job.draw.seed for job in campaign.jobs] == [1] and [one.seed for one in campaign.rows] == [0]
    assert len(campaign.failed) == 1 and "seed 2" in campaign.failed[0] and "small disk" in campaign.failed[0]


# -- what is done to a run -----------------------------------------------------------------------------------


@pytest.mark.parametrize("harm", [records._cut, records._copied, records._swapped, records._flipped])
def test_record_files_are_damaged_as_said(harm: Any, tmp_path: Path) -> None:
    """What came before the agent fell asleep is whole; of what came after, frames are gone, doubled or out of order."""
    telemetry = Telemetry(tmp_path, run="r", rank=0, world=1)
    for step in range(1, 4):
        telemetry.record(step, loss=1.0)
    path = next(Path(RunDirectory(str(tmp_path)).records).glob("trainer-*"))
    before, since = path.read_bytes(), path.stat().st_size
    for step in range(4, 9):
        telemetry.record(step, loss=1.0)
    whole = scan(path.read_bytes())
    assert harm(path, since, 0.5) if harm is records._cut else harm(path, since)
    after = scan(path.read_bytes())
    assert path.read_bytes().startswith(before)
    steps = [frame.step for frame in after.frames if frame.kind == Kind.RECORD]
    expected = {
        "_cut": steps != [1, 2, 3, 4, 5, 6, 7, 8] and not after.damaged,
        "_copied": len(after.frames) == len(whole.frames) + 5,
        "_swapped": steps == [1, 2, 3, 4, 5, 6, 8, 7],
        "_flipped": bool(after.damaged),
    }
    assert expected[harm.__name__], (steps, after.damaged)
    telemetry.close()


def test_a_clock_jumps_when_its_file_says_so(tmp_path: Path) -> None:
    """From then on by so much, in seconds and in nanoseconds; a file that says nothing changes nothing."""
    clock = clockjump.JumpingClock(str(tmp_path))
    real = clock.time()
    (tmp_path / clockjump.FILE).write_text("-3600.5")
    clock._looked = 0.0
    assert clock.time() == pytest.approx(real - 3600.5, abs=30)
    assert clock.time_ns() / 1e9 == pytest.approx(real - 3600.5, abs=30)
    (tmp_path / clockjump.FILE).write_text("")
    clock._looked = 0.0
    assert clock.time() == pytest.approx(real - 3600.5, abs=30)


def obeyed(tmp_path: Path, kind: Any) -> tuple[dict[str, float], Any]:
    """Knobs as they stand, and the answer, after a directive that doubles alpha_max."""
    stands = {"alpha_max": 0.1, "temperature": 1.0}

    def knob(name: str) -> Knob:
        return Knob(name, lambda: stands[name], lambda value: stands.update({name: value}), 0.0, 2.0)

    telemetry = Telemetry(tmp_path, run="r", rank=0, world=1)
    control = kind(telemetry, [knob("alpha_max"), knob("temperature")], {})
    run = RunDirectory(str(tmp_path))
    Path(run.directives).mkdir(mode=0o700)
    asked = Directive(
        1, "r", "trainer", telemetry.incarnation, 0, "a", 2e9 * 2, knobs=(KnobChange("alpha_max", 0.1, 0.2),)
    )
    for path, data in ((run.directive(1), asked.encode()), (run.bell, (1).to_bytes(8, "little"))):
        Path(path).touch(mode=0o600)
        Path(path).write_bytes(data)
    (answer,) = control.apply(1)
    return stands, answer


def test_odd_controls_are_odd(tmp_path: Path) -> None:
    """The deaf one reads back what it was told and did nothing; the harmful one did it, and harm besides."""
    stands, answer = obeyed(tmp_path / "deaf", Deaf)
    assert answer.result == "applied" and answer.values["alpha_max"] == 0.2 and stands["alpha_max"] == 0.1
    stands, answer = obeyed(tmp_path / "harmful", Harmful)
    assert answer.result == "applied" and stands == {"alpha_max": 0.2, "temperature": 0.7}


# -- the real thing ------------------------------------------------------------------------------------------

QUICK = (
    Draw(15, 1, 25, (Strike("nan_data", 8),), (Due("agent_killed", 8, 0.0),)),
    Draw(3, 1, 16, (), (Due("agent_stopped", 3, 2.0), Due("second_agent", 4, 0.0))),
)


def test_a_handful_of_draws_really_played(tmp_path: Path) -> None:
    """An agent that is killed as the fault strikes mends it all the same; a healthy run is left alone."""
    pytest.importorskip("torch", reason="the reference trainer needs torch: pip install 'gyrostat[reference]'")
    jobs = [Job(draw, tmp_path / str(draw.seed)) for draw in QUICK]
    for job in jobs:
        job.folder.mkdir()
    running = [subprocess.Popen(job.command, stderr=subprocess.PIPE, text=True) for job in jobs]
    said = [process.communicate()[1] for process in running]
    assert [process.returncode for process in running] == [0, 0], said
    rows = [Row(**json.loads((job.folder / "row.json").read_text())) for job in jobs]
    notes = [(job.folder / "notes.txt").read_text() for job in jobs]
    assert [one.verdict for one in rows] == [MENDED, MENDED], (rows, notes)
    assert "SIGKILL to the agent" in notes[0] and rows[0].sent == 1
    assert "a second agent ended with 3" in notes[1] and rows[1].sent == 0
