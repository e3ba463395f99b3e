"""The demonstration as a process: with a quick trainer in the reference trainer's place, and a real sidecar."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gyrostat_agent.demo import run_demo, runner
from gyrostat_agent.demo.child import Child, environment
from gyrostat_agent.demo.errors import DemoError
from gyrostat_agent.demo.scenarios import (
    BASELINES,
    CLEAN,
    NOTHING,
    POISON,
    SCENARIOS,
    TREATED,
    UNTREATED,
    Layout,
    command,
    likeness,
)  # fmt: skip
from gyrostat_agent.demo.stage import prepare

QUICK = Path(__file__).parent / "quick"
DEADLINE = 60.0
SHOW = (
    "import json, sys; from gyrostat_agent.demo import runner; runner.NEEDED = ();"
    "sys.exit(runner.run_demo(**json.loads(sys.argv[1])))"
)


def until(done: Callable[[], object]) -> None:
    """Wait for a condition; fail where it does not come true."""
    end = time.monotonic() + DEADLINE
    while not done():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def start(
    folder: Path, behaviour: str = "", env: dict[str, str] | None = None, **given: object
) -> "subprocess.Popen[str]":
    """Start a demonstration of 30 steps whose trainer is the quick one."""
    path = os.pathsep.join([str(QUICK), *(p for p in sys.path if p)])
    settings = {"steps": 30, "out": str(folder), **given}
    return subprocess.Popen(
        [sys.executable, "-c", SHOW, json.dumps(settings)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, encoding="utf-8", errors="replace", start_new_session=True,
        env={**os.environ, "PYTHONPATH": path, "QUICK_TRAINER": behaviour, **(env or {})},
    )  # fmt: skip


@pytest.mark.parametrize(
    "locale", [{"LANG": "zh_CN.UTF-8"}, {"LC_ALL": "C"}, {"LC_ALL": "POSIX", "PYTHONIOENCODING": "ascii"}],
    ids=["zh_CN", "C", "ascii"],
)  # fmt: skip
def test_a_fault_is_shown_and_mended(locale: dict[str, str], tmp_path: Path) -> None:
    """Three runs, a sidecar that passes the item over, exit status 0, report and figures; in a Chinese folder too."""
    folder, figures = tmp_path / "演示 目录", tmp_path / "数据.json"
    process = start(folder, env=locale, json_path=str(figures))
    output, errors = process.communicate(timeout=DEADLINE)
    assert (process.returncode, errors) == (0, "")
    assert "\x1b" not in output and "Mended: skip_data" in output and "report.html" in output
    [run] = json.loads(figures.read_text(encoding="utf-8"))["runs"]
    assert (run["clean"], run["untreated"], run["treated"]) == (0.5, None, 0.5)
    assert [a["outcome"] for a in run["incidents"][0]["actions"]] == ["done"]
    assert (folder / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")


@pytest.mark.full
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_reference_trainer_is_mended(scenario: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What a newcomer sees: the real model, its fault, and each scenario's own remedy, within four minutes."""
    pytest.importorskip("torch", reason="the reference trainer needs torch: pip install 'gyrostat[reference]'")
    began = time.monotonic()
    status = run_demo(scenario, out=str(tmp_path / "demo"), no_color=True)
    assert status == 0, capsys.readouterr().out
    assert time.monotonic() - began < 240.0


def test_a_trainer_that_fails_is_told_with_its_last_words(tmp_path: Path) -> None:
    """Exit status 1, what the trainer said last and where the rest is; no traceback of ours."""
    process = start(tmp_path / "demo", "fail")
    output, errors = process.communicate(timeout=DEADLINE)
    assert process.returncode == 1
    assert "no such file: model.safetensors" in errors and "errors.log" in errors
    assert "Traceback" not in output + errors


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_ends_every_process(number: int, tmp_path: Path) -> None:
    """Ctrl-C and SIGTERM leave no child behind, and the files are named."""
    process = start(tmp_path / "demo", "wait")
    logs = [tmp_path / "demo" / name / "run" / "records" for name in (CLEAN, UNTREATED)]
    until(lambda: all(any(log.glob("trainer-*")) for log in logs))
    os.kill(process.pid, number)
    output, _ = process.communicate(timeout=DEADLINE)
    assert process.returncode == 130 and str(tmp_path / "demo") in output
    assert not _alive(str(tmp_path))


def _alive(words: str) -> list[str]:
    """Command lines of living processes that name ``words``."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if words in line:
            found.append(line)
    return found


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"scenario": "nan_datum"}, "nan_data, nan_applied"),
        ({"steps": 10}, "at least 30"),
        ({"seeds": 0}, "at least 1"),
    ],
    ids=["scenario", "steps", "seeds"],
)
def test_a_mistake_is_answered_in_a_sentence(
    given: dict[str, object],
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What cannot be shown ends with exit status 2 and says what may be given."""
    monkeypatch.setattr(runner, "NEEDED", ())
    assert run_demo(out=str(tmp_path), no_color=True, **given) == 2  # type: ignore[arg-type]
    assert said in capsys.readouterr().err


def test_without_the_reference_trainers_libraries_it_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line, exit status 2, and nothing was started."""
    monkeypatch.setattr(runner, "NEEDED", ("a_library_that_is_not_there",))
    assert run_demo(no_color=True) == 2
    assert "pip install 'gyrostat[reference]'" in capsys.readouterr().err


def test_other_peoples_files_are_never_deleted(tmp_path: Path) -> None:
    """A folder that is not a demonstration's is refused; one that is begins afresh."""
    (tmp_path / "clean").mkdir()
    with pytest.raises(DemoError, match="holds other files"):
        prepare(tmp_path)
    assert (tmp_path / "clean").is_dir()
    ours = prepare(tmp_path / "demo")
    ours[CLEAN].summary.write_text("{}")
    assert not prepare(tmp_path / "demo")[CLEAN].summary.exists()


def test_baselines_are_shared_only_where_they_are_one_command(tmp_path: Path) -> None:
    """A seed's clean and untreated runs are made once for all scenarios in which they are the same, and only there."""
    alike: dict[tuple[object, ...], set[tuple[str, ...]]] = {}
    for scenario in SCENARIOS.values():
        for run in BASELINES:
            said = tuple(command(scenario, run, Layout(tmp_path), 60, 0))
            alike.setdefault(likeness(scenario, run, 60, 0), set()).add(said)
    assert all(len(commands) == 1 for commands in alike.values())
    assert len({said for commands in alike.values() for said in commands}) == len(alike) < 2 * len(SCENARIOS)
    assert likeness(SCENARIOS["clean"], CLEAN, 60, 1) != likeness(SCENARIOS["clean"], CLEAN, 60, 0)


def test_each_fault_breaks_its_runs_and_no_other(tmp_path: Path) -> None:
    """The clean run knows of no fault; untreated and treated are struck at the same step, or from the start."""
    for scenario in SCENARIOS.values():
        runs = {run: command(scenario, run, Layout(tmp_path), 60, 0) for run in (CLEAN, UNTREATED, TREATED)}
        struck = {
            run: [a for a in arguments if a.startswith(("--fault", "--poison"))] for run, arguments in runs.items()
        }
        faults = 0 if scenario.fault == NOTHING else 1
        assert struck[CLEAN] == [] and len(struck[UNTREATED]) == faults and struck[TREATED] == struck[UNTREATED]
        if scenario.fault not in (NOTHING, POISON):
            aim = runs[UNTREATED][runs[UNTREATED].index("--fault") + 1]
            assert aim == (scenario.fault if scenario.from_start else f"{scenario.fault}@21")


@pytest.mark.parametrize(
    ("name", "run", "guarded", "faulty", "watched"),
    [
        ("nan_data", CLEAN, False, False, False),
        ("nan_data", UNTREATED, False, True, False),
        ("nan_data", TREATED, True, True, True),
        ("nan_applied", TREATED, False, True, True),
        ("nan_crash", TREATED, False, True, True),
    ],
)
def test_each_run_is_started_as_its_scenario_says(
    name: str, run: str, guarded: bool, faulty: bool, watched: bool, tmp_path: Path
) -> None:
    """The fault, the guard and the sidecar are where the scenario has them, and nowhere else."""
    started = command(SCENARIOS[name], run, Layout(tmp_path), 60, 0)
    assert ("--guard" in started) is guarded
    assert (started[started.index("--poison-at-step") + 1] == "21") if faulty else "--poison-at-step" not in started
    assert (started[2:4] == ["gyrostat_agent", "run"]) is watched


def test_children_have_one_thread_and_none_of_our_settings(tmp_path: Path) -> None:
    """Two runs fit two cores, and a setting of the person's own run does not leak into the demonstration."""
    given = environment({"PATH": "/bin", "GYROSTAT_RUN_DIR": "/mine"})
    assert given["OMP_NUM_THREADS"] == "1" and given["PATH"] == "/bin" and "GYROSTAT_RUN_DIR" not in given


def test_a_childs_own_children_end_with_it(tmp_path: Path) -> None:
    """Whatever a child started is gone when it is ended, even where it ignores the polite signal."""
    stubborn = 'trap "" TERM; touch "$0/ready"; while :; do sleep 0.1; done'
    child = Child(["/bin/sh", "-c", 'sh -c "$1" "$0" & wait', str(tmp_path), stubborn], tmp_path)
    until((tmp_path / "ready").exists)
    child.end()
    assert child.status is not None
    until(lambda: not _alive(str(tmp_path)))
