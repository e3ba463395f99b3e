"""The comparison with other tools: the same rows for all, judged alike, and no way to look good by being loud."""

import json
import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import peer_venv
import pytest
import sidebyside
from generate import write
from peers.fixed import FixedThresholds
from peers.megatron import Largest
from peers.roster import ROSTER
from peers.sigma import Sigma
from peers.watcher import Alarm, Peer, Setting, Watcher
from ranking import ahead, matched, table
from split import CALIBRATE, planned
from standing import OURS, Entrant, Standing, figures, judge, ours, theirs
from witness import FOLDED, SHORT, course

from gyrostat_agent.backtest.case import Case
from gyrostat_agent.backtest.corpus import cases, index
from gyrostat_agent.backtest.run import rows
from gyrostat_agent.backtest.tally import tally
from gyrostat_agent.backtest.verdicts import verdicts
from gyrostat_agent.cli.options import builtin, digest_of

LENGTH = 300


class Saying:
    """A tool that says what it is told to, by step, and remembers what it was shown."""

    def __init__(self, said: Mapping[int, Collection[Alarm]], deaf_after: int | None = None) -> None:
        self.said, self.seen, self.asked, self.deaf_after = said, list[int](), list[int](), deaf_after

    def row(self, step: int, values: Mapping[str, float], asked: bool) -> Collection[Alarm]:
        if self.deaf_after is not None and step > self.deaf_after:
            raise RuntimeError("cannot read this")
        self.seen.append(step)
        self.asked += [step] if asked else []
        return self.said.get(step, ())


def lines(healthy: bool, onset: int | None = None, due: int | None = None, length: int = LENGTH) -> list[Case]:
    """A run of one series."""
    series = tuple((step, 1.0) for step in range(1, length + 1))
    return [Case("corpus", 1, "c", "c", "loss_spike", "loss", healthy, series, onset, due)]


def judged(watcher: Watcher, *runs: list[Case], stands: bool = False) -> Standing:
    """How a tool stands that does the same in each run."""
    peer = Peer("tool", (Setting("as it comes", lambda: watcher),), "loss", stands=stands)
    standing = Standing(theirs(peer)[0])
    for run in runs:
        judge(standing, run, lambda part: list(rows(part)))
    return standing


@pytest.mark.parametrize("grave", [True, False], ids=["critical", "warning"])
def test_an_alarm_in_time_finds_a_fault_whatever_it_says(grave: bool) -> None:
    """A rival need not know our words for a fault; too early and too late find nothing."""
    run = lines(False, onset=200, due=205)
    found = {step: judged(Saying({step: [Alarm("odd", grave)]}), run).recall for step in (150, 199, 200, 205, 206)}
    assert found == {150: 0.0, 199: 0.0, 200: 1.0, 205: 1.0, 206: 0.0}


def test_a_tool_that_is_always_on_finds_nothing() -> None:
    """One alarm at the start of each run, never taken back, would else be the best of all tools."""
    always = Saying({step: [Alarm("on")] for step in range(1, LENGTH + 1)})
    assert judged(always, lines(False, onset=200, due=205), stands=True).recall == 0.0
    soon = Saying({step: [Alarm("on")] for step in range(190, LENGTH + 1)})
    assert judged(soon, lines(False, onset=200, due=205), stands=True).recall == 1.0


def test_false_alarms_are_counted_once_a_bout() -> None:
    """What follows within ten rows is the same alarm to whoever was called; then it is another."""
    said = {step: [Alarm(f"odd {step}")] for step in (50, 55, 55 + FOLDED, 66 + FOLDED)}
    one = judged(Saying(said), lines(True))
    assert (one.tally.incidents, one.tally.warnings, one.tally.overall.failed) == (2, 0, 1)
    assert one.noise == pytest.approx(2000.0 / LENGTH)
    mild = judged(Saying({50: [Alarm("odd", False), Alarm("too", False)]}), lines(True))
    assert (mild.tally.incidents, mild.tally.warnings, mild.tally.overall.failed) == (0, 1, 0)


def test_rows_come_in_their_order_and_nothing_else_does() -> None:
    """No tool sees a row before its time; one that judges its whole log is asked at each row while a fault is due."""
    watcher = Saying({})
    peer = Peer("tool", (), "loss", every=25)
    run = lines(False, onset=201, due=203)
    course(peer, watcher, run, list(rows(run)))
    assert watcher.seen == list(range(1, LENGTH + 1))
    assert watcher.asked == sorted({*range(25, LENGTH + 1, 25), 201, 202, 203})
    short = Saying({})
    course(peer, short, lines(True, length=SHORT), list(rows(lines(True, length=SHORT))))
    assert short.asked == short.seen


def test_a_tool_that_breaks_off_is_told() -> None:
    """Its run counts, and finds nothing; the others go on."""
    one = judged(Saying({}, deaf_after=10), lines(False, onset=200, due=205), lines(True))
    assert (one.broken, one.recall, one.tally.runs) == (2, 0.0, 2)
    assert "cannot read this" in one.why and figures(one)["broken_runs"] == 2


def standing(name: str, words: str, found: int, false: int) -> Standing:
    """Of ten faults and a thousand healthy steps."""
    one = Standing(Entrant(name, words, "", lambda part, made: course(ROSTER[0], Saying({}), part, made)))
    one.tally.overall.faulty, one.tally.overall.found = 10, found
    one.tally.steps, one.tally.incidents = 1000, false
    return one


def test_rivals_are_compared_at_our_false_alarms() -> None:
    """The best recall among the settings that are as quiet as we are, and no other."""
    all_of = [standing("r", "loud", 10, 5), standing("r", "quiet", 3, 0), standing("r", "as quiet", 6, 1)]
    chosen = matched(all_of, 1.0)
    assert chosen is not None and chosen.entrant.words == "as quiet"
    assert matched(all_of[:1], 1.0) is None


@pytest.mark.parametrize(("rival", "said"), [(7, 0), (8, 1), (9, 1)], ids=["behind", "beside", "ahead"])
def test_a_rival_that_is_not_behind_is_named(rival: int, said: int) -> None:
    """A claim to be ahead must be able to fail."""
    standings = [standing(OURS, "the pack", 8, 1), standing("r", "loud", 10, 9), standing("r", "tuned", rival, 1)]
    assert len(ahead(standings)) == said
    text = "\n".join(table(standings))
    assert "at our false alarms: tuned" in text and f"{rival} of 10" in text


def test_a_setting_that_is_quiet_enough_may_not_exist() -> None:
    """Then it is said, and nothing stands in its row."""
    text = "\n".join(table([standing(OURS, "the pack", 8, 0), standing("r", "loud", 10, 9)]))
    assert "| r | at our false alarms: no setting is so quiet | - |" in text


STEADY = [1.0 + 0.01 * (row % 7) for row in range(120)]


@pytest.mark.parametrize(
    ("watcher", "series", "value"),
    [
        (FixedThresholds(1.0, 1), "loss", 3.0),
        (FixedThresholds(1.0, 1), "grad_norm", 11.0),
        (FixedThresholds(1.0, 1), "entropy", 0.2),
        (FixedThresholds(1.0, 1), "loss", math.nan),
        (Largest(10.0, 100), "grad_norm", 11.0),
        (Largest(10.0, 100), "loss", math.inf),
        (Sigma(3.0, 50, False), "throughput", 2.0),
        (Sigma(3.0, 50, True), "throughput", math.nan),
    ],
    ids=["loss", "norm", "entropy", "nan", "megatron", "megatron inf", "sigma", "sigma nan"],
)
def test_yardsticks_do_what_they_are_known_for(watcher: Watcher, series: str, value: float) -> None:
    """A rival that is built wrong is no rival: silent on a steady series, loud where it should be."""
    assert not [step for step, v in enumerate(STEADY) if watcher.row(step, {series: v}, True)]
    assert watcher.row(len(STEADY), {series: value}, True)
    assert watcher.row(len(STEADY) + 1, {}, True), "a row that does not tell the series says nothing of it"


def test_what_is_not_installed_is_left_out_with_its_reason() -> None:
    """The bench runs on a machine without any of them."""
    assert "no_such_module" in Peer("x", (), "", ("no_such_module",)).missing()
    assert Peer("x", (), "", ("json",)).missing() == ""
    assert len({peer.name for peer in ROSTER}) == len(ROSTER)
    assert all(len({one.words for one in peer.settings}) == len(peer.settings) > 0 for peer in ROSTER)


HERE = [
    pytest.param(peer, one, id=f"{peer.name}: {one.words}")
    for peer in ROSTER
    if not peer.missing()
    for one in peer.settings
]


@pytest.mark.parametrize(("peer", "setting"), HERE)
def test_every_tool_that_is_here_takes_rows(peer: Peer, setting: Setting) -> None:
    """In each setting, numbers that are not finite among them."""
    run = lines(False, onset=30, due=31, length=40)
    odd = [(0, step, {"loss": math.nan if step == 30 else 1.0, "kl": 0.1, "reward": 0.5}) for step in range(1, 41)]
    assert course(peer, setting.made(), run, odd).steps == 40


def test_ours_is_what_backtest_says(tmp_path: Path) -> None:
    """The same recall, precision and false alarms as the command, where no alarm is older than allowed."""
    path = tmp_path / "made.jsonl"
    with path.open("w", encoding="utf-8") as out:
        write(out, planned(CALIBRATE, 2), CALIBRATE, 400)
    text = builtin()
    whole = tally(verdicts(index([str(path)]), text, digest_of(text)))
    one = Standing(ours(text, digest_of(text)))
    for run in index([str(path)]):
        judge(one, cases(run), lambda part: list(rows(part)))
    assert one.tally.overall.cases == whole.overall.cases == 2
    assert (one.tally.overall.found, one.tally.overall.failed) == (whole.overall.found, whole.overall.failed)
    assert (one.tally.incidents, one.tally.warnings) == (whole.incidents, whole.warnings)
    assert one.rows == sum(len(list(rows(cases(run)))) for run in index([str(path)]))


def test_the_whole_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A table for people, every setting for machines, progress beside them."""
    path = tmp_path / "results" / "detection.json"
    asked = ["--runs", "2", "--steps", "400", "--no-public", "--only", "fixed thresholds", "--json", str(path)]
    assert sidebyside.main(asked) == 0
    said = capsys.readouterr()
    found = json.loads(path.read_text(encoding="utf-8"))
    [(name, part)] = found["parts"].items()
    assert name == "2 generated runs, split calibrate" and f"## {name}" in said.out
    assert "| Gyrostat |" in said.out and "left out: 3-sigma: not among --only" in said.err
    assert "run 2 of 2" in said.err
    assert len(part["entrants"]) == 1 + len(ROSTER[0].settings)
    wanted = {"recall", "precision", "false_alarms_per_1000", "onset_error", "seconds_per_1000_rows", "setting"}
    assert all(one.keys() >= wanted for one in part["entrants"])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [(["--runs", "1"], "at least 2"), (["--steps", "10"], "at least 400"), (["--only", "nagios"], "known are"),
     (["--split", "test"], "calibrate")],
    ids=["runs", "steps", "tool", "split"],
)  # fmt: skip
def test_what_cannot_be_asked_for(arguments: Sequence[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Status 2, and what to give instead."""
    with pytest.raises(SystemExit) as stopped:
        sidebyside.main(arguments)
    assert stopped.value.code == 2 and says in capsys.readouterr().err


def test_what_is_installed_is_named_with_its_version() -> None:
    """A table says nothing a year on unless it says what was measured."""
    wanted = peer_venv.requirements(peer_venv.WANTED.read_text(encoding="utf-8"))
    assert len(wanted) > 5 and all(line.count("==") == 1 for line in wanted)
    assert peer_venv.requirements("# none\n\nriver==1  # drift\n") == ["river==1"]


def test_a_folder_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Named, and no stack trace."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert peer_venv.main([str(tmp_path / "file" / "venv")]) == 2
    assert str(tmp_path) in capsys.readouterr().err


def test_shared_among_processes_the_counts_are_the_same(tmp_path: Path) -> None:
    """More processes must change nothing but the time that it takes."""
    path = tmp_path / "made.jsonl"
    with path.open("w", encoding="utf-8") as out:
        write(out, planned(CALIBRATE, 3), CALIBRATE, 400)
    alone, many = (sidebyside.judged("made", path, [ROSTER[0]], jobs).standings for jobs in (1, 2))
    timeless = [{name: value for name, value in figures(one).items() if "seconds" not in name} for one in alone]
    assert timeless == [{name: value for name, value in figures(one).items() if "seconds" not in name} for one in many]
    assert all(one.tally.runs == 3 and one.seconds > 0 for one in many)
