"""The run live in the terminal: what is wrong stands first, a dead agent never looks well, text is never markup."""

import json
import math
import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest
from agent_runs import NAN, Bench
from cli_runs import Run
from rich.console import Console

from gyrostat_agent import statusfile
from gyrostat_agent.top.frame import frame
from gyrostat_agent.top.past import Past
from gyrostat_agent.top.spark import ODD, spark
from gyrostat_exporters.view import Tally, nothing, view


def text(said: dict[str, object], trouble: str = "", past: Past | None = None, width: int = 80) -> str:
    console = Console(width=width, file=open(os.devnull, "w"), record=True)  # noqa: SIM115 - the console closes nothing
    console.print(frame(said, trouble, past or Past(), width))
    console.file.close()
    return console.export_text()


def test_a_curve_shows_where_it_is_not_finite() -> None:
    """One NaN among hundreds is not thinned away."""
    values = [1.0] * 300
    values[57] = NAN
    assert spark(values, 40).count(ODD) == 1 and len(spark(values, 40)) == 40
    assert spark([1.0, 2.0, 3.0], 40, plain=True) == "_+@"
    assert spark([math.inf, NAN], 10) == "!!"
    assert spark([], 10) == ""


def test_what_is_wrong_stands_first_and_within_the_width() -> None:
    """The incident before the alert before the curves; no line is longer than the terminal."""
    said = {
        "run": "训练", "step": 7, "mode": "act", "ready": True,
        "open": [{"id": "i0001", "kind": "nonfinite", "state": "held", "why": "needs approval " * 20, "onset": 5}],
        "held": [{"action": "i0001.1", "remedy": "rollback", "does": "", "reason": "needs approval", "until": None}],
        "alerts": [["NonFinitePoison", "critical", "firing"]] * 3 + [["Slow", "warning", "pending"]],
    }  # fmt: skip
    shown = text(said)
    assert shown.index("i0001 nonfinite") < shown.index("held") < shown.index("NonFinitePoison (critical), 3 of them")
    assert "训练" in shown and "Slow" not in shown
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize("name", ["[bold red]x[/]", "\x1b[31mred", "[link=http://a]b[/link]"])
def test_what_a_run_calls_itself_is_text(name: str) -> None:
    """Neither markup nor a terminal's own commands."""
    past = Past()
    past.add(0, 1, 1.0, {f"{name}loss": 1.0, "loss": 1.0})
    shown = text({"run": name, "step": 1}, past=past)
    assert "\x1b" not in shown
    assert name.replace("\x1b", "") in shown.replace("\\x1b", "")


def test_pace_is_counted_anew_where_the_run_went_back() -> None:
    """A step is taken once, and one of another segment is no step of minus fifty."""
    past = Past()
    for step in range(10):
        past.add(0, step, 2.0 * step, {"loss": 1.0})
    past.add(0, 4, 9.0, {"loss": 9.0})
    assert past.pace == 2.0 and list(past.series["loss"]) == [1.0] * 10
    past.add(1, 3, 30.0, {"loss": 2.0})
    assert math.isnan(past.pace)
    past.add(1, 4, 33.0, {"loss": 2.0})
    assert past.pace == 3.0


def shown(bench: Bench) -> None:
    agent = bench.agent()
    for step in range(1, 6):
        bench.tell(step)
        agent.once()
    statusfile.write(bench.run, view(agent.engine.state, Tally(), {}, ()), "")
    agent.close()


def test_a_run_that_nobody_watches_never_looks_well(bench: Bench, cli: Run) -> None:
    """What the last agent saw is shown, and that it is gone is said before it."""
    shown(bench)
    status, out, _ = cli("top", "--once", bench.run.path)
    assert status == 0 and "not watched" in out and "nobody watches this run" in out
    assert "loss" in out, "its curves come from the journal"
    status, out, _ = cli("top", "--once", "--json", bench.run.path)
    told = json.loads(out)
    assert status == 0 and told["step"] == 5 and "nobody watches" in told["trouble"]


def test_before_the_agent_has_shown_anything(bench: Bench, cli: Run) -> None:
    """A young run is no error."""
    bench.agent().close()
    statusfile.write(bench.run, nothing("run", "shadow", "the first pass is not over yet"), "")
    status, out, _ = cli("top", "--once", bench.run.path)
    assert status == 0 and "the first pass is not over yet" in out


def test_no_run_no_screen(cli: Run, tmp_path: Path) -> None:
    """What is wrong, and what to give."""
    status, _, err = cli("top", str(tmp_path / "nowhere"))
    assert status == 2 and "nowhere" in err


def test_q_ends_it_and_the_terminal_is_as_it_was(bench: Bench) -> None:
    """In a real terminal: drawn, ended by a key with status 0, echo on again."""
    import termios

    shown(bench)
    master, slave = pty.openpty()
    before = termios.tcgetattr(slave)
    argv = [sys.executable, "-m", "gyrostat_agent", "top", "--every", "60", bench.run.path]
    environment = {**os.environ, "TERM": "xterm-256color", "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    with subprocess.Popen(argv, stdin=slave, stdout=slave, stderr=slave, env=environment) as drawn:
        said, end = b"", time.monotonic() + 60
        while b"grad_norm" not in said and b"loss" not in said:
            assert time.monotonic() < end, said
            if select.select([master], [], [], 0.1)[0]:
                said += os.read(master, 65536)
        os.write(master, b"q")
        assert drawn.wait(60) == 0
    assert termios.tcgetattr(slave) == before
    os.close(master)
    os.close(slave)
