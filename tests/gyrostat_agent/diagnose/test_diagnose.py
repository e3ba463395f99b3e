"""``gyrostat diagnose`` and ``series``: past logs, judged as a newcomer would have them."""

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gyrostat_agent.cli.group import gyrostat
from gyrostat_agent.diagnose import thinning

DATA = Path(__file__).parents[1] / "sources" / "logs" / "data"
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB\n"
)


def called(*words: str | Path) -> Result:
    """The command line, called."""
    return CliRunner().invoke(gyrostat, [str(word) for word in words])


def figures(*words: str | Path) -> tuple[int, dict[str, Any]]:
    """Exit status and JSON of a diagnosis."""
    result = called("diagnose", "--json", *words)
    return result.exit_code, json.loads(result.stdout)


def verl(path: Path, count: int, **columns: Sequence[str]) -> Path:
    """A log of verl's console; what is not given is a healthy constant."""
    usual = {"actor/pg_loss": "0.01", "actor/grad_norm": "0.2", "critic/rewards/mean": "0.5", "actor/entropy": "0.6",
             "perf/time_per_step": "60.0"}  # fmt: skip
    with path.open("w", encoding="utf-8") as file:
        for step in range(1, count + 1):
            values = {n: (columns[n][step - 1] if n in columns else v) for n, v in usual.items()}
            file.write(f"step:{step} - " + " - ".join(f"{n}:{v}" for n, v in values.items()) + "\n")
    return path


@pytest.mark.parametrize("path", sorted(DATA.glob("trl-*")), ids=lambda p: p.name)
def test_true_logs_are_called_ill_or_healthy_as_they_were(path: Path) -> None:
    """Runs that went NaN are found, and no run that was well is called ill."""
    ill = "-nan-" in path.name
    status, found = figures(path)
    assert (status, found["healthy"]) == (int(ill), not ill)
    if ill:
        assert found["faults"][0]["kind"] in ("nonfinite", "nan") and found["faults"][0]["onset_step"] in (3, 4)


def test_a_fault_is_told_with_its_onset_what_to_do_and_what_it_cost(tmp_path: Path) -> None:
    """A reward that is gone at step 61 of 100: since when, seen when, what would have been done, what to look at."""
    path = verl(tmp_path / "运行.log", 100, **{"critic/rewards/mean": ["0.8"] * 60 + ["0.0"] * 40})
    status, found = figures(path)
    [fault] = [one for one in found["faults"] if one["severity"] == "critical"]
    assert status == 1 and fault["kind"] == "divergence"
    assert 58 <= fault["onset_step"] <= 62 and 61 <= fault["fired_step"] <= 65
    assert fault["action"] == "go back to a certified checkpoint" and len(fault["checks"]) == 3
    assert 35 <= found["wasted"]["steps"] <= 43 and found["wasted"]["seconds"] == 60.0 * found["wasted"]["steps"]
    text = called("diagnose", path).stdout
    assert text.startswith("Ill: divergence, from step ") and "look at 3:" in text and "hours of every GPU" in text


def test_a_healthy_log_is_called_so_and_what_could_not_be_judged_is_said(tmp_path: Path) -> None:
    """Silence never reads as clean: the rules that had nothing to look at are named with what they want."""
    status, found = figures(verl(tmp_path / "run.log", 80))
    assert (status, found["format"], found["steps"], found["faults"]) == (0, "verl", 80, [])
    off = {one["alert"]: one["wants"] for one in found["switched_off"]}
    assert off["ExpertsUneven"] == "expert counts or expert_rho_eff beside expert_dead_share"
    assert off["RolloutMismatch"] == "mismatch_kl" and off["TrainerDied"] == "gyrostat run around the trainer"
    assert not off.keys() & {"NonFinitePoison", "RewardCollapsed", "EntropyLow", "GradientSpike", "FaultInLog"}
    assert found["unread"][0] | {"file": ""} == {
        "file": "", "lines": 80, "understood": 80, "cut": 0, "error": None, "names": [],
    }  # fmt: skip


def test_an_error_line_is_a_fault_at_its_step(tmp_path: Path) -> None:
    """The last thing that a run said."""
    path = verl(tmp_path / "run.log", 40)
    with path.open("a") as file:
        file.write(OOM)
    status, found = figures(path)
    assert status == 1 and [(f["kind"], f["onset_step"]) for f in found["faults"]] == [("oom", 40)]


def test_several_files_are_one_run(tmp_path: Path) -> None:
    """Console and a file of its own for the entropy: read beside each other, step by step."""
    console = verl(tmp_path / "console.log", 60)
    other = tmp_path / "entropy_log.txt"
    other.write_text("".join(f"{step} {0.7 if step < 40 else 0.004}\n" for step in range(1, 61)))
    _, found = figures(console, other)
    assert found["format"] == ["verl", "entropy-log"] and (found["first_step"], found["last_step"]) == (1, 60)
    assert {source["understood"] for source in found["unread"]} == {60}


def test_a_very_long_log_is_merged_and_its_nan_stays_at_its_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several steps are looked at as one, which is said; what is not finite keeps its own."""
    monkeypatch.setattr("gyrostat_agent.diagnose.examination.MOST", 200)
    monkeypatch.setattr("gyrostat_agent.diagnose.examination._SAMPLE", 10_000)
    grads = ["0.2"] * 3000
    grads[2345] = grads[2346] = "nan"
    path = verl(tmp_path / "run.log", 3000, **{"actor/grad_norm": grads})
    status, found = figures(path)
    assert status == 1 and found["faults"][0]["onset_step"] == 2346 and found["steps"] == 3000
    assert "steps in a row were looked at as one" in called("diagnose", path).stdout


def test_merging_keeps_means_and_tells_the_odd_apart() -> None:
    """Of three in a row the mean; a row that is not finite as it is; nothing over a jump back."""
    from gyrostat.wire import Record

    rows = [Record("trainer", 0, "l", int(s > 6), s, s if s <= 6 else s - 4, float(s), {"x": float(s)})
            for s in range(1, 10)]  # fmt: skip
    rows[3] = rows[3]._replace(values={"x": float("nan")})
    found = [(r.segment, r.step, r.values["x"]) for r in thinning.thinned(rows, 3)]
    assert [(a, b) for a, b, _ in found] == [(0, 1), (0, 4), (0, 5), (1, 3)]
    assert [found[i][2] for i in (0, 2, 3)] == [2.0, 5.5, 8.0]


def test_the_page_opens_offline_and_escapes_what_the_log_says(tmp_path: Path) -> None:
    """One file: no link to anywhere, scripts by their digests, nothing of the log as markup."""
    path = tmp_path / "run.log"
    evil = "</script><script>alert(1)</script>"
    path.write_text("".join(f"step:{n} - actor/grad_norm:nan - x{evil}:1 - actor/pg_loss:nan\n" for n in range(1, 30)))
    page = tmp_path / "report.html"
    assert called("diagnose", "--html", page, path).exit_code == 1
    text = page.read_text(encoding="utf-8")
    assert evil not in text and not re.search(r"(?:src|href)=|@import|url\(", text)
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)
    assert policy and "default-src 'none'" in policy[1] and policy[1].count("'sha256-") == 2
    assert "uPlot" in text and "nonfinite" in text


@pytest.mark.parametrize("what", ["fifo", "missing", "junk", "folder", "empty"])
def test_what_cannot_be_read_is_one_clear_line(what: str, tmp_path: Path) -> None:
    """Exit status 2, what it is and no stack trace."""
    path = tmp_path / "run.log"
    if what == "fifo":
        os.mkfifo(path)
    elif what == "junk":
        path.write_bytes(os.urandom(5000))
    elif what == "folder":
        path.mkdir()
    elif what == "empty":
        path.touch()
    result = called("diagnose", path)
    assert result.exit_code == 2 and "Traceback" not in result.output
    words = {"folder": "no numbers of TensorBoard's", "empty": "it is empty", "missing": "No such file"}
    assert "run.log" in result.output and words.get(what, "") in result.output
    assert figures(path)[1]["healthy"] is None, "of what was not read, nobody says that it is well"


@pytest.mark.parametrize("where", ["name", "path"])
def test_half_a_character_costs_no_page(where: str, tmp_path: Path) -> None:
    """JSON may spell one in a name, and a path need not be text: the page is written all the same."""
    path = tmp_path / (os.fsdecode(b"\xff") if where == "path" else "run")
    path.write_text("".join(f'{{"step": {n}, "loss": 0.5, "odd\\ud800": 1.0}}\n' for n in range(1, 20)))
    result = called("diagnose", "--html", tmp_path / "page.html", path)
    assert result.exit_code == 0 and "odd?" in result.output
    assert "odd?" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_step_that_two_files_tell_is_one(tmp_path: Path) -> None:
    """The console and the file logger of one run: as many steps as it made."""
    first, second = verl(tmp_path / "a.log", 40), verl(tmp_path / "b.log", 50)
    assert figures(first, second)[1]["steps"] == 50


def test_what_to_look_at_is_whole(tmp_path: Path) -> None:
    """No check ends in the colon of a command that is not shown."""
    _, found = figures(verl(tmp_path / "run.log", 20, **{"actor/grad_norm": ["0.2"] * 10 + ["nan"] * 10}))
    checks = [check for fault in found["faults"] for check in fault["checks"]]
    assert checks and not any(check.endswith(":") for check in checks)


def test_series_shows_how_each_name_was_read(tmp_path: Path) -> None:
    """The first thing to ask when a rule stays silent."""
    text = called("series", verl(tmp_path / "run.log", 3)).stdout
    assert re.search(r"actor/pg_loss +loss\n", text) and re.search(r"critic/rewards/mean +reward\n", text)
    rows = json.loads(called("series", "--json", tmp_path / "run.log").stdout)
    assert {"file", "format", "name", "read_as"} == set(rows[0])


def test_an_unknown_format_is_answered_with_those_there_are(tmp_path: Path) -> None:
    """A slip of the finger is met with the list."""
    result = called("diagnose", "--format", "verll", verl(tmp_path / "run.log", 3))
    assert result.exit_code != 0 and "megatron" in str(result.exception) + result.output


def test_a_file_that_could_not_be_read_may_hold_the_fault(tmp_path: Path) -> None:
    """Beside a healthy log it is no 0, and beside one that is ill it hides nothing."""
    missing = tmp_path / "gone.log"
    well = verl(tmp_path / "well.log", 40)
    ill = verl(tmp_path / "ill.log", 100, **{"critic/rewards/mean": ["0.8"] * 60 + ["0.0"] * 40})
    assert [called("diagnose", one, missing).exit_code for one in (well, ill)] == [2, 1]
    assert "No such file" in called("diagnose", well, missing).output
