"""``gyrostat runbook``: whatever woke somebody leads to its page."""

import json
import os
import pty
import re
import subprocess
import sys

import pytest
from click.testing import CliRunner, Result

from gyrostat_agent.cli.options import builtin
from gyrostat_agent.cli.runbook import runbook
from gyrostat_agent.errors import EXIT_SETUP, SetupError
from gyrostat_agent.runbooks import faults_of, find, runbooks
from gyrostat_rules.faults import FAULTS
from gyrostat_rules.packfile import parse

PAGES = runbooks()
PACK = parse(builtin())


def called(*words: str) -> Result:
    """The command as it is called, its errors left as they are."""
    return CliRunner().invoke(runbook, words, standalone_mode=False)


@pytest.mark.parametrize(
    ("name", "page"),
    {
        "NonFinitePoison": "nonfinite", "GpuLost{rank=1,role=gpu,series=gpu_lost}": "hardware", "rewardstuck": "reward",
        "GyrostatBlind": "agent", "TrainerSilent": "stall", "entropy": "entropy", "gpu": "gpu", "nan_inf": "nonfinite",
        "checkpoint_overdue": "checkpoints", " TrainerDied ": "crash",
    }.items(),
)  # fmt: skip
def test_a_name_leads_to_its_page(name: str, page: str) -> None:
    """A rule, an alert with its labels as it was copied, one of Prometheus, a playbook, a page, a fault."""
    done = called(name)
    assert done.exception is None and done.stdout == PAGES[page].text


def test_every_name_there_is_leads_somewhere() -> None:
    """Each rule's own page, each playbook's, and one for each fault that a rule tells."""
    assert all(find(rule.alert, PAGES, PACK).page.name == rule.runbook_url for rule in PACK.rules)
    assert all(find(book.incident, PAGES, PACK).what == "playbook" for book in PACK.playbooks)
    told = {rule.fault for rule in PACK.rules if rule.fault}
    for fault in told:
        assert any(rule.fault == fault for rule in PACK.rules if rule.runbook_url == find(fault, PAGES, PACK).page.name)
    assert told == {fault for page in PAGES.values() for fault in faults_of(page, PACK.rules)}


def test_a_fault_of_several_pages_names_the_others() -> None:
    """The gravest rule's page is shown, and where else it is told stands on stderr."""
    done = called("expert_imbalance")
    assert done.stdout == PAGES["experts"].text and done.stderr == ""
    done = called("oom")
    assert done.stdout == PAGES["memory"].text
    several = [name for name in FAULTS if name in {r.fault for r in PACK.rules} and find(name, PAGES, PACK).also]
    assert several
    for name in several:
        found, done = find(name, PAGES, PACK), called(name)
        assert done.stderr == "".join(f"See also: gyrostat runbook {other}\n" for other in found.also)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("NonFinitPoison", "did you mean NonFinitePoison"),
        ("entropie", "did you mean entropy"),
        ("gyrostatgonne", "did you mean GyrostatGone"),
        ("nan_in", "did you mean nan_inf"),
        ("zzzz", "gyrostat runbook --list"),
        ("nccl_timeout", "a collective that timed out; no rule that comes with Gyrostat tells it"),
        ("\x1b[31mred", "gyrostat runbook --list"),
    ],
)
def test_a_name_that_is_none_is_met_with_those_that_are_near(name: str, said: str) -> None:
    """Exit status 2, one line, and nothing that commands the terminal."""
    error = called(name).exception
    assert isinstance(error, SetupError) and error.status == EXIT_SETUP
    assert said in str(error) and "\x1b" not in str(error) and "\n" not in str(error)


@pytest.mark.parametrize("words", [(), ("--list",)], ids=["no name", "--list"])
def test_the_list_names_every_page_alert_and_fault(words: tuple[str, ...]) -> None:
    """What there is to ask for, also without a name."""
    shown = re.split(r"[\s,]+", called(*words).stdout)
    assert set(PAGES) <= set(shown)
    text = "".join(called(*words).stdout.split())
    assert all(told.alert in text for page in PAGES.values() for told in page.told if len(told.alert) < 20)


def test_json_has_what_a_machine_wants() -> None:
    """The page with its alerts, faults and rungs; of the list all of them, without texts."""
    one = json.loads(called("TrainerDied", "--json").stdout)
    assert (one["runbook"], one["asked"], one["is"], one["rungs"]) == (
        "crash", "TrainerDied", "rule", [rung.remedy for rung in PACK.playbook("crash").rungs],
    )  # fmt: skip
    assert one["alerts"] == [{"alert": "TrainerDied", "severity": "critical", "of": "rule"}]
    assert one["text"] == PAGES["crash"].text and one["faults"] == ["crash"]
    every = json.loads(called("--list", "--json").stdout)
    assert [page["runbook"] for page in every] == list(PAGES) and all("text" not in page for page in every)


_ALONE = "from gyrostat_agent.cli.runbook import runbook; runbook(['GpuHot'], standalone_mode=False)"


@pytest.mark.parametrize(
    ("settings", "drawn"), [({}, True), ({"NO_COLOR": "1"}, False), ({"LC_ALL": "C", "PYTHONUTF8": "0"}, False)],
    ids=["terminal", "NO_COLOR", "ASCII"],
)  # fmt: skip
def test_on_a_terminal_the_page_is_drawn(settings: dict[str, str], drawn: bool) -> None:
    """Headings and bullets, and a link is the command that opens it; as it is written where that cannot be shown."""
    leader, follower = pty.openpty()
    base = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "LC_ALL", "FORCE_COLOR")}
    env = {**base, "TERM": "xterm-256color", "COLUMNS": "90", "PYTHONIOENCODING": "", "LC_ALL": "C.UTF-8", **settings}
    env |= {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONCOERCECLOCALE": "0"}
    child = subprocess.Popen([sys.executable, "-c", _ALONE], stdout=follower, stdin=subprocess.DEVNULL, env=env)
    os.close(follower)
    shown = _all(leader)
    assert child.wait(timeout=60) == 0
    text = re.sub(r"\x1b\[[0-9;]*m", "", shown.decode("utf-8"))
    assert (b"\x1b[" in shown) == drawn
    assert ("gyrostat runbook hardware" in " ".join(text.split())) == drawn
    assert ("## Whom to wake" in text) != drawn and "Whom to wake" in text


def _all(leader: int) -> bytes:
    shown = b""
    while True:
        try:
            some = os.read(leader, 65536)
        except OSError:  # EIO: the other side is closed
            some = b""
        if not some:
            os.close(leader)
            return shown
        shown += some
