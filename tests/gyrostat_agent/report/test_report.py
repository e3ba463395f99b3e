"""``gyrostat report``: from the journal alone, from the alert to the bill; and nothing in it commands a reader."""

import json
import os
import re
from collections.abc import Callable, Iterable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from cli_runs import Run, one_line
from run_story import NAN, Story, healthy_run

from gyrostat_agent.journal import Journal
from gyrostat_agent.report.case import MOST
from gyrostat_agent.report.plain import duration, markdown, plain
from gyrostat_agent.rundir import prepare
from gyrostat_rules.inputs import Input

Journaled = Callable[[Iterable[Input]], str]
HOSTILE = "</script><img src=x onerror=alert(1)>\u202egnp.\x1b[31m|`**_loss"


def mended() -> Story:
    """NaN applied at step 21; somebody approves after a minute; back to 15, well again."""
    story = healthy_run(approvals=True)
    story.checkpoint(19, fit="unfit", why="a weight is not finite")
    story.applied(21)
    story.tick(60.0)
    story.command("approve", action=story.action.id, by="ada")
    story.ack(step=22)
    return story.steps(16, 45)


def told(cli: Run, *words: str) -> dict[str, Any]:
    """The JSON document of ``report``."""
    status, out, err = cli("report", *words, "--json")
    assert (status, err) == (0, "")
    found: dict[str, Any] = json.loads(out)
    return found


def page_of(cli: Run, path: Path, *words: str) -> str:
    """The HTML that ``report`` writes."""
    status, out, err = cli("report", *words, "--html", str(path))
    assert (status, out, err) == (0, "", f"written: {path}\n")
    return path.read_text(encoding="utf-8")


def test_the_timeline_is_whole_and_in_order(cli: Run, journaled: Journaled) -> None:
    """The muted warning, the alert, what was passed by, planned and held, who approved, the answer, proof and bill."""
    (one,) = told(cli, journaled(mended().inputs), "i0001")["told"]
    words = [line["word"] for line in one["timeline"]]
    assert words == [
        "alert firing", "alert firing", "incident", "incident", "passed by", "planned", "held", "held", "person",
        "sent", "acting", "applied", "alert resolved", "jumped", "probation", "done", "resolved", "bill",
    ]  # fmt: skip
    assert any("ada approved i0001.2" in line["text"] for line in one["timeline"])


def test_the_decision_names_what_was_rejected(cli: Run, journaled: Journaled) -> None:
    """Each rung with its fate, the checkpoint that was chosen, and why the newer one was not."""
    (one,) = told(cli, journaled(mended().inputs), "i0001")["told"]
    assert [(a["remedy"], a["fate"]) for a in one["decision"]] == [
        ("skip_data", "passed by"), ("rollback", "sent, done"),
    ]  # fmt: skip
    assert one["decision"][0]["reason"].startswith("a bad update was applied")
    assert one["checkpoints"] == [
        "step 15 chosen: verified, before the onset at step 21", "step 19 not: a weight is not finite",
    ]  # fmt: skip


def test_the_curves_lie_around_the_onset(cli: Run, journaled: Journaled) -> None:
    """What the alert is about comes first; what was gone back over is apart, and the NaN is there at its step."""
    (one,) = told(cli, journaled(mended().inputs), "i0001")["told"]
    loss = one["curves"][0]
    assert loss["name"] == "loss of trainer 0"
    stands, undone, again = loss["stretches"]
    assert (stands["steps"][-1], undone["steps"], undone["undone"]) == (15, [*range(15, 22)], True)
    assert undone["values"][-1] == {"~": "nan"} and again["steps"][0] == 16


def test_the_bill_is_told(cli: Run, journaled: Journaled) -> None:
    """As the rules wrote it, in JSON, in Markdown, on the page, and in one line of ``incidents``."""
    path = journaled(mended().inputs)
    (one,) = told(cli, path, "i0001")["told"]
    assert one["bill"]["lost"]["undone"] == 6 and one["bill"]["reaction"]["held_seconds"] == 60.0
    _, out, _ = cli("report", path, "i0001")
    assert "- **lost**: 6 steps (6 gone back over, 0 not applied) and 60 s of silence: 66 s in all" in out
    assert "of that held 60 s" in out and "how sure**: certain" in out
    _, out, _ = cli("incidents", path)
    assert [line for line in out.splitlines() if " bill " in line and "lost 6 steps" in line]


def test_a_run_is_one_table_and_folds(cli: Run, journaled: Journaled, tmp_path: Path) -> None:
    """All incidents in rows, counts, interventions for each thousand steps, alerts by rule; each incident folded."""
    story = mended()
    for step in range(46, 120):
        story.skipped(step) if step in (100, 101) else story.step(step)
    path = journaled(story.inputs)
    found = told(cli, path)
    assert [row["incident"] for row in found["table"]] == ["i0001", "i0002"]
    assert found["steps_told"] == 119 + 6
    assert found["interventions_per_1000_steps"] == pytest.approx(1000 * found["interventions"] / 125)
    assert found["rules"]["NonFinitePoison"]["fired"] == 2
    page = page_of(cli, tmp_path / "run.html", path)
    assert page.count('<details class="case') == 2 and '<a href="#i0002">' in page


def test_one_that_is_not_over_says_so(cli: Run, journaled: Journaled) -> None:
    """An incident that waits has no bill yet."""
    story = healthy_run(approvals=True)
    story.applied(21)
    path = journaled(story.inputs)
    _, out, _ = cli("report", path, "i0001")
    assert "held, not over" in out and "Not over yet." in out
    assert told(cli, path)["table"][0]["outcome"] == "held, not over"


def test_shadow_says_what_would_have_been(cli: Run, journaled: Journaled) -> None:
    """Nothing was done, and the bill names what was not."""
    story = healthy_run(act=False)
    story.applied(21)
    story.steps(22, 60)
    _, out, _ = cli("report", journaled(story.inputs), "i0001")
    assert "would have**: rollback: step 15 chosen" in out and "back over 6 steps; not done: mode is shadow" in out


class _Tags(HTMLParser):
    """The tags of a page, and what they would load."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.loads: list[str] = []
        self.handlers: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.loads += [value or "" for name, value in attrs if name in ("src", "href", "action")]
        self.handlers += [name for name, _ in attrs if name.startswith("on")]


@pytest.fixture
def hostile(journaled: Journaled) -> str:
    """A run whose name, series, reasons and people are attacks on whoever reads of them."""
    story = Story(approvals=True)
    story.command("configure", mode="act", approvals=True, run=HOSTILE)
    story.begin().checkpoint(10).checkpoint(15).steps(1, 20)
    story.step(21, **{HOSTILE: NAN, "loss": NAN})
    story.command("deny", action=story.action.id, by=HOSTILE)
    return journaled(story.inputs)


def test_markup_in_names_is_text_on_the_page(cli: Run, hostile: str, tmp_path: Path) -> None:
    """No tag, no handler and nothing to load comes out of a run; no character turns the text; the policy is strict."""
    page = page_of(cli, tmp_path / "i.html", hostile)
    tags = _Tags()
    tags.feed(page)
    assert "img" not in tags.tags and not tags.handlers
    assert all(link.startswith("#i") for link in tags.loads)
    assert "&lt;img src=x onerror=alert(1)&gt;" in page and "U+202E" in page
    assert "\u202e" not in page and "\x1b" not in page
    assert re.search(r"default-src 'none'; .*script-src 'sha256-[^ ]+ 'sha256-[^ ]+\">", page)
    code = page.split('id="data">')[1].split("</script>")[0]
    assert "<" not in code and json.loads(code)


def test_markup_in_names_is_text_in_markdown(cli: Run, hostile: str) -> None:
    """No HTML, no link, no emphasis, no cell of a table, and no code that commands a terminal."""
    _, out, _ = cli("report", hostile)
    assert "\x1b" not in out and "\u202e" not in out
    blocks = out.split("\n```\n")  # within them nothing is markup; no name can end one
    assert len(blocks) == 3 and all(not re.search(r"(?<!\\)<", text) for text in blocks[::2]) and "\\<img" in out
    rows = [line for line in out.splitlines() if re.match(r"\| \d{4}-", line)]
    assert rows and all(len(re.findall(r"(?<!\\)\|", row)) == 5 for row in rows)


def test_a_report_is_read_while_an_agent_writes(cli: Run, tmp_path: Path) -> None:
    """The journal is open for writing meanwhile, and the writer goes on."""
    from gyrostat_rules.engine import Engine

    story, run, engine = mended(), prepare(str(tmp_path / "run")), Engine()
    journal = Journal(os.path.join(run.agent, "journal.db"))
    for given in story.inputs[:-1]:
        journal.commit(given, engine.feed(given), {})
    assert told(cli, run.path)["incidents"] == 1
    journal.commit(story.inputs[-1], engine.feed(story.inputs[-1]), {})
    journal.close()


def test_what_is_cut_is_said(cli: Run, journaled: Journaled) -> None:
    """An incident through which a trainer is born again and again keeps both ends of its story."""
    story = healthy_run(approvals=True)
    story.applied(21)
    for life in range(2 * MOST + 20):
        story.begin(life=f"life-{life}")
    path = journaled(story.inputs)
    found = told(cli, path, "i0001")
    (one,) = found["told"]
    assert len(one["timeline"]) == 2 * MOST and one["entries_left_out"] > 0
    assert f"i0001: {one['entries_left_out']} entries in the middle" in found["left_out"][0]


def test_curves_may_be_left_out(cli: Run, journaled: Journaled) -> None:
    """--plots 0 reads no inputs again, and says so."""
    found = told(cli, journaled(mended().inputs), "--plots", "0")
    assert found["told"][0]["curves"] == [] and "newest 0 incidents" in found["left_out"][0]


def test_a_word_alone_may_be_the_incident(
    cli: Run, journaled: Journaled, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    """Where the run is known already, its incident is enough."""
    path = journaled(mended().inputs)
    monkeypatch.setenv("GYROSTAT_RUN_DIR", path)
    assert told(cli, "i0001")["told"][0]["id"] == "i0001"


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["{run}", "i0009"], 2, ["no incident i0009", "there are i0001"]),
        (["{run}/nowhere"], 2, ["holds no agent/journal.db"]),
        (["{run}", "i0001", "more"], 2, ["one RUN_DIR and one INCIDENT"]),
        (["{run}", "--html", "{run}/no/folder/x.html"], 2, ["--html", "folder that can be written"]),
    ],
    ids=["no such incident", "no such run", "too many words", "no such folder"],
)
def test_mistakes_are_one_line(cli: Run, journaled: Journaled, words: list[str], status: int, said: list[str]) -> None:
    """What, where, why and what to do; no stack trace."""
    path = journaled(mended().inputs)
    found, _, err = cli("report", *(word.format(run=path) for word in words))
    assert found == status
    one_line(err, *said)


def test_a_journal_that_cannot_be_read_is_status_4(cli: Run, journaled: Journaled) -> None:
    """Another program's file in its place."""
    path = journaled(mended().inputs)
    Path(path, "agent", "journal.db").write_bytes(b"no database at all" * 100)
    for rest in ("journal.db-wal", "journal.db-shm"):
        Path(path, "agent", rest).unlink(missing_ok=True)
    status, _, err = cli("report", path)
    assert status == 4
    one_line(err, "journal")


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(None, "-"), (0.0, "0 s"), (0.25, "0.2 s"), (36.0, "36 s"), (750.0, "12.5 min"), (11520.0, "3.2 h"),
     (2e5, "2.3 d")],
)  # fmt: skip
def test_durations_are_said_in_their_unit(seconds: float | None, said: str) -> None:
    """Two weeks of seconds are nobody's unit."""
    assert duration(seconds) == said


def test_plain_names_stay_as_they_are() -> None:
    """What is no markup is not escaped: series and Chinese names are read as they were written."""
    assert markdown("actor/grad_norm 损失 0.5 & more") == "actor/grad_norm 损失 0.5 & more"
    assert markdown("_x_ a_b") == "\\_x\\_ a_b"
    assert plain("a\u2066b") == "aU+2066b"
