"""Files of rule tests: what is said about each mistake, where, with which fix."""

from pathlib import Path

import pytest

from gyrostat_agent.errors import SetupError
from gyrostat_agent.ruletest.testfile import RuleTests, load
from gyrostat_rules.packerrors import PackError

GOOD = """\
tests:
  - name: a
    rule: GradientSpike
    series: [{name: grad_norm, values: 1x20}]
    events: [{after: 5, log: oom}]
    experts: {count: 8, skew: [{top: 0.2x20}]}
    hello: {knobs: {lr_scale: 1}}
    expect: [{step: 10, alerts: [GradientSpike], incidents: [entropy], actions: [turn]}]
    never: {alerts: LossSpike, incidents: any}
"""
# Stands for the packs that come with Gyrostat, which go on growing.
SHIPPED = """\
pack: shipped
groups:
  - name: g
    rules:
      - {alert: GradientSpike, detector: spike, with: {series: [grad_norm]}, severity: warning}
      - {alert: LossSpike, detector: spike, with: {series: [loss]}, severity: warning}
"""
MINE = """\
pack: mine
groups:
  - name: own
    rules:
      - {alert: Mine, detector: level, with: {series: [x], above: 1}, severity: warning}
"""


def read(folder: Path, text: str) -> RuleTests:
    """A file of this text, loaded."""
    path = folder / "t.yaml"
    path.write_text(text, encoding="utf-8")
    return load(str(path), SHIPPED)


def told(folder: Path, text: str) -> str:
    """All that is said about a file that must not load."""
    with pytest.raises((PackError, SetupError)) as caught:
        read(folder, text)
    return str(caught.value).replace(str(folder / "t.yaml"), "t.yaml")


def test_a_good_file_loads(tmp_path: Path) -> None:
    """Every key that is changed below is right as it stands."""
    tests = read(tmp_path, GOOD)
    assert tests.lines == (2,) and tests.step_seconds == 10.0 and tests.cases[0].never.alerts == ("LossSpike",)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("rule: GradientSpike", "rule: GradientSpik", "3:11: 'GradientSpik' is no alert of the pack; did you mean 'Gr"),
        ("[GradientSpike]", "[GradientSpick]", "is no alert of the pack; did you mean 'GradientSpike'?"),
        ("[GradientSpike]", "[any]", "'any' names no alert"),
        ("LossSpike", "LosSpike", "9:21: 'LosSpike' is no alert of the pack; did you mean 'LossSpike'?"),
        ("[entropy]", "[entropi]", "unknown incident kind 'entropi'; did you mean 'entropy'?"),
        ("incidents: any", "incidents: al", "unknown incident kind 'al'"),
        ("[turn]", "[tun]", "unknown remedy 'tun'; did you mean 'turn'?"),
        ("series:", "serie:", "4:5: unknown key 'serie'; did you mean 'series'?"),
        ("values: 1x20", "values: 1x20 2y", "4:40: at character 6: '2y' says no values"),
        ("values: 1x20", "values: 1x20, rank: -1", "'rank' is -1, too small; write 0 or more"),
        ("top: 0.2x20", "top: 0.2x20, layer: 1", "there is no layer 1 loop 0"),
        ("log: oom", "log: om", "'log' cannot be 'om'"),
        ("log: oom", "log: oom, bye: true", "an event is one thing, and this is bye and log"),
        ("log: oom", "says: x", "an event is one thing, and this is none"),
        ("log: oom", "silence: long", "'long' says no length of time"),
        ("after: 5", "after: 50", "5:22: the test has no step 50; its steps are 0 to 20"),
        ("step: 10", "step: 21", "8:21: the test has no step 21; its steps are 0 to 20"),
        ("step: 10", "step: 10, segment: 1", "the test has no step 10 in segment 1"),
        ("step: 10", "step: 10, onset: 3", "unknown key 'onset'; known are step, segment, alerts, incidents, actions"),
        ("lr_scale: 1", "lr_scale: {value: 1, hi: 2}", "unknown key 'hi'; did you mean 'high'?"),
        (", alerts: [GradientSpike], incidents: [entropy], actions: [turn]", "", "nothing is expected at this step"),
        ("tests:", "step_seconds: 0\ntests:", "1:15: 'step_seconds' is 0, too small; write more than 0"),
        ("tests:", "pack: [none.yaml]\ntests:", "none.yaml: No such file or directory"),
        ("tests:", "pack: 3\ntests:", "1:7: 'pack' must be a list"),
        (GOOD, "", "t.yaml:1:1: the file is empty; start with 'tests:'"),
        (GOOD, "- a\n", "t.yaml:1:1: the file must be a mapping, not a list"),
        (GOOD, "tests: [\n", "this cannot be read"),
        (GOOD, "tests: []\n", "'tests' is empty; write at least one"),
        (GOOD, "tests:\n  - {name: a, series: [{name: x, values: 1x5}]}\n", "2:5: this test expects nothing"),
        (GOOD, "tests:\n  - {name: a, never: {alerts: any}}\n", "2:5: this test tells no step"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_at_its_place_with_the_fix(tmp_path: Path, old: str, new: str, says: str) -> None:
    """One line that an editor can jump to."""
    assert old in GOOD
    said = told(tmp_path, GOOD.replace(old, new, 1))
    assert says in said and "\n" not in said, said


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    """Of all tests of a file, in its order."""
    wrong = GOOD.replace("GradientSpike", "A").replace("turn", "tun") + GOOD.removeprefix("tests:\n").replace(
        "5,", "50,"
    )
    said = told(tmp_path, wrong).splitlines()
    assert [line.split(":")[1] for line in said] == ["3", "8", "8", "13"], said


def test_packs_beside_the_file_are_tested(tmp_path: Path) -> None:
    """Alone, or as one with those that come with Gyrostat; only their alerts are known."""
    (tmp_path / "mine.yaml").write_text(MINE, encoding="utf-8")
    tests = "tests:\n  - {name: a, series: [{name: x, values: 1x5}], never: {alerts: [Mine, LossSpike]}}\n"
    assert read(tmp_path, "pack: [builtin, mine.yaml]\n" + tests).cases
    assert "'LossSpike' is no alert of the pack" in told(tmp_path, "pack: mine.yaml\n" + tests)


def test_a_mistake_in_a_pack_is_told_at_its_own_line(tmp_path: Path) -> None:
    """Not at that of the text they are joined to."""
    (tmp_path / "mine.yaml").write_text(MINE.replace("detector: level", "detector: levl"), encoding="utf-8")
    said = told(tmp_path, "pack: [builtin, mine.yaml]\n" + GOOD)
    assert f"{tmp_path / 'mine.yaml'}:5:33: unknown detector 'levl'; did you mean 'level'?" in said


def test_a_file_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    """A folder, a file that is not there, bytes that are no text."""
    (tmp_path / "b.yaml").write_bytes(b"\xff\xfe\x00")
    for path in (tmp_path, tmp_path / "none.yaml", tmp_path / "b.yaml"):
        with pytest.raises(SetupError, match=str(path)):
            load(str(path), SHIPPED)
