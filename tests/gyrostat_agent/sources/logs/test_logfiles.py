"""LogFiles: logs as a source of the agent, from the first line to the incident."""

import subprocess
import sys
from pathlib import Path

import pytest

from gyrostat.wire import Record
from gyrostat_agent.sources.logs.logfiles import LogFiles
from gyrostat_rules.inputs import FaultLine, SourceState

NOW = 1_800_000_000.0
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB\n"
)


def row(step: int, grad: str = "0.21") -> str:
    """A line of verl's console."""
    return f"(TaskRunner pid=7) step:{step} - actor/pg_loss:0.01 - actor/grad_norm:{grad} - actor/entropy:0.6\n"


def test_what_a_log_gains_is_told_as_of_now_and_once(tmp_path: Path) -> None:
    """Its own clock is in another zone or missing: silence is counted from when a line came, not from what it says."""
    path = tmp_path / "run.log"
    path.write_text(row(1) + row(2))
    source = LogFiles([str(path)], {})
    found = source.drain(NOW)
    assert [(one.step, one.time) for one in found if isinstance(one, Record)] == [(1, NOW), (2, NOW)]
    assert [one.detail for one in found if isinstance(one, SourceState)] == ["read as verl, console or file logger"]
    assert source.drain(NOW + 1) == []


def test_how_much_of_a_log_is_understood_is_said_once(tmp_path: Path) -> None:
    """Lines that say nothing and names that nobody knows: told when enough has come, and not again."""
    path = tmp_path / "run.log"
    own = " - my/own:1\n"
    path.write_text("".join("a library chatters\n" + row(step).rstrip() + own for step in range(1, 25)))
    source = LogFiles([str(path)], {})
    said = [one.detail for one in source.drain(NOW) if isinstance(one, SourceState)]
    assert said == ["read as verl, console or file logger: 24 of the first 48 lines; under their own names: my/own"]
    with path.open("a") as more:
        more.write(row(25))
    assert not [one for one in source.drain(NOW) if isinstance(one, SourceState)]


def test_it_goes_on_from_the_offsets_that_were_committed(tmp_path: Path) -> None:
    """An agent that begins anew tells no step twice and leaves none out."""
    path = tmp_path / "run.log"
    path.write_text(row(1) + row(2) + row(3)[:15])
    first = LogFiles([str(path)], {})
    first.drain(NOW)
    path.write_text(row(1) + row(2) + row(3) + row(4))
    second = LogFiles([str(path)], first.offsets())
    assert [one.step for one in second.drain(NOW) if isinstance(one, Record)] == [3, 4]


def test_error_lines_are_told_once_a_pass(tmp_path: Path) -> None:
    """Every rank of a node prints the same; the journal need not hold it a thousand times."""
    path = tmp_path / "run.log"
    path.write_text(row(1) + 1000 * OOM)
    [fault] = [one for one in LogFiles([str(path)], {}).drain(NOW) if isinstance(one, FaultLine)]
    assert (fault.role, fault.kind) == ("trainer", "oom")


def test_a_log_that_is_not_there_is_said_once(tmp_path: Path) -> None:
    """And read when it comes."""
    path = tmp_path / "run.log"
    source = LogFiles([str(path)], {})
    [state] = source.drain(NOW)
    assert isinstance(state, SourceState) and "No such file" in state.detail
    assert source.drain(NOW) == []
    path.write_text(row(1))
    assert [one.step for one in source.drain(NOW) if isinstance(one, Record)] == [1]


@pytest.mark.parametrize("options", [[], ["--log-format", "verl"]], ids=["recognised", "named"])
def test_a_trainer_without_our_code_has_its_nan_found(options: list[str], tmp_path: Path) -> None:
    """``gyrostat run --log``: a training command as it was, and the incident is in its history."""
    log = tmp_path / "训练.log"
    script = tmp_path / "train.py"
    lines = "".join(row(step) for step in range(1, 25)) + row(25, "nan") + row(26, "nan")
    script.write_text(f"open({str(log)!r}, 'w').write({lines!r})\nimport time; time.sleep(3)\n", encoding="utf-8")
    base = [sys.executable, "-m", "gyrostat_agent"]
    ran = subprocess.run(
        [*base, "run", "--run-dir", str(tmp_path / "run"), "--log", str(log), *options, "--listen", "", "--",
         sys.executable, str(script)], capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    told = subprocess.run([*base, "incidents", str(tmp_path / "run")], capture_output=True, text=True, timeout=60)
    assert "nonfinite: grad_norm is nan" in told.stdout and "stall" not in told.stdout
