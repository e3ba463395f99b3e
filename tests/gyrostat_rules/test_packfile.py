"""Pack files: what parses, and what is said about each mistake, where, with which fix."""

from importlib.resources import files
from typing import Literal, NamedTuple

import pytest
from run_story import CORE

from gyrostat_rules.detectors import DETECTORS, Detector
from gyrostat_rules.detectors.nonfinite import NonFinite
from gyrostat_rules.detectors.stall import Stall
from gyrostat_rules.lasting import Lasting
from gyrostat_rules.pack import KnobPlan, Playbook, Rule, RulePack, Rung
from gyrostat_rules.packerrors import Mistake
from gyrostat_rules.packfile import PackError, parse

SMALL = """\
pack: small
groups:
  - name: g
    rules:
      - alert: A
        detector: stall
        severity: critical
        incident: stall
        inhibits: [B]
      - alert: B
        detector: nonfinite
        with: {classes: [poison], confirmed: true}
        severity: warning
playbooks:
  - incident: stall
    rungs:
      - {remedy: rollback, horizon: 5, knobs: [{name: lr, times: 0.5}], irreversible: true}
"""


def mistakes_of(text: str) -> list[Mistake]:
    """All mistakes of a pack that must not parse."""
    with pytest.raises(PackError) as caught:
        parse(text, "p.yaml")
    return caught.value.mistakes


def edited(old: str, new: str, text: str = SMALL) -> str:
    """``text`` with one thing changed; a table row that no longer changes anything is a mistake of this file."""
    assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in the pack"
    return text.replace(old, new)


# -- what parses ------------------------------------------------------------------------------------------


def test_a_pack_becomes_the_values_the_engine_uses() -> None:
    """Every key of a file arrives where the engine looks for it; what is left out has the declared default."""
    rung = Rung("rollback", 5, (KnobPlan("lr", times=0.5),))
    rules = (
        Rule("A", "stall", Stall(), "critical", "g", incident="stall", inhibits=("B",)),
        Rule("B", "nonfinite", NonFinite(("poison",), True), "warning", "g"),
    )
    assert parse(SMALL) == RulePack("small", rules, (Playbook("stall", (rung,)),))


def test_what_bounds_a_playbook_is_read() -> None:
    """Budget, ceilings, cooldown and what one action may cost are not mixed up."""
    bounds = "    budget: {actions: 1, steps: 2}\n    ceiling: {incidents: 3, steps: 4}\n    cooldown: 0\n"
    bounds += "    standstill: {incidents: 5, steps: 6}\n    blast_radius: {steps: 7, knobs: 8, ranks: 9}\n    rungs:"
    assert parse(edited("    rungs:", bounds)).playbooks[0][2:] == (1, 2, 3, 4, 0, 5, 6, 7, 8, 9)


@pytest.mark.parametrize(
    ("given", "read"),
    [("{actions: 2, steps: 50}", (2, 50)), ("{actions: 2}", (2, 0))],
    ids=["with its steps", "in the playbook's steps"],
)
def test_a_rung_has_a_budget_of_its_own(given: str, read: tuple[int, int]) -> None:
    """So often for this remedy, whatever the playbook allows all of them together."""
    rung = parse(edited("horizon: 5", f"horizon: 5, budget: {given}")).playbooks[0].rungs[0]
    assert (rung.budget_actions, rung.budget_steps) == read


def test_optional_keys_of_a_rule_are_read() -> None:
    """Labels, summary, runbook and the step counts reach the rule."""
    more = (
        "{for: 3 of 5 steps, keep_firing_for: 90s, labels: {team: rl}, when: [not warmup], match: {role: trainer}, "
        'fault: crash, annotations: {summary: "{role} {value:.3g} {{x}}"}, runbook_url: stall, '
    )
    text = edited("      - alert: B\n        detector: nonfinite\n        with: {classes: [poison], confirmed: true}\n"
                  "        severity: warning", f"      - {more}alert: B, detector: exit, severity: info}}")  # fmt: skip
    rule = parse(text).rules[1]
    assert (rule.lasts, rule.keeps, rule.labels) == (Lasting(3, 5), Lasting(seconds=90.0), {"team": "rl"})
    assert (rule.when, rule.match, rule.fault) == (("not warmup",), {"role": ("trainer",)}, "crash")
    assert (rule.annotations, rule.runbook_url) == ({"summary": "{role} {value:.3g} {{x}}"}, "stall")


@pytest.mark.parametrize("number", ["1e-3", "0.001", "1.0e-3", "+.001"])
def test_numbers_are_read_as_people_write_them(number: str) -> None:
    """``1e-3`` is a number here, though YAML 1.1 calls it text."""
    assert parse(edited("times: 0.5", f"times: {number}")).playbooks[0].rungs[0].knobs[0].times == 0.001


def test_the_core_pack_parses() -> None:
    """The pack that ships is usable, and a critical poison value leads to the mildest remedy first."""
    pack = parse(CORE, "core.yaml")
    assert {r.alert: (r.severity, r.incident) for r in pack.rules} == {
        "NonFiniteValue": ("warning", ""),
        "NonFinitePoison": ("critical", "nonfinite"),
        "UndefinedValue": ("info", ""),
        "KnobDrift": ("warning", ""),
        "RewardCollapsed": ("critical", "divergence"),
        "GradientSpike": ("warning", ""),
        "LossSpike": ("warning", ""),
        "LossScaleAtFloor": ("warning", ""),
        "LossShifted": ("warning", ""),
        "StepsSkipped": ("warning", ""),
        "NothingLearnt": ("warning", ""),
        "LossJumpedAtResumption": ("warning", ""),
        "RewardLostAtResumption": ("warning", ""),
        "DivergenceLooksBetter": ("warning", ""),
        "MemoryFillsUp": ("warning", ""),
        "LossRisesFromStart": ("warning", ""),
        "GradientDrift": ("info", ""),
        "EntropyLow": ("warning", ""),
        "EntropyCollapsed": ("critical", "entropy"),
        "GroupsWithoutSpread": ("info", ""),
        "EntropyForecast": ("info", ""),
        "EntropyExploded": ("warning", ""),
        "EntropyFallsFast": ("warning", ""),
        "KlExploded": ("warning", ""),
        "KlFarAboveUsual": ("warning", ""),
        "UpdateTooLarge": ("warning", ""),
        "UpdateFarAboveUsual": ("warning", ""),
        "ClippingSaturated": ("warning", ""),
        "ClippingInert": ("info", ""),
        "RewardDeclined": ("warning", ""),
        "ValidationCollapsed": ("warning", ""),
        "RewardStuck": ("warning", ""),
        "RewardFrozen": ("warning", ""),
        "ValidationRegressed": ("warning", ""),
        "RewardHacked": ("warning", ""),
        "AnswersShort": ("warning", ""),
        "AnswersLong": ("warning", ""),
        "AnswersTruncated": ("warning", ""),
        "RolloutsApart": ("warning", ""),
        "RolloutMismatch": ("critical", "mismatch"),
        "FewSamplesCount": ("warning", ""),
        "WeightsOff": ("warning", ""),
        "RolloutsStale": ("warning", ""),
        "PivotsFew": ("warning", ""),
        "ExpertsUneven": ("warning", ""),
        "BalanceLossRose": ("warning", ""),
        "ExpertsOverfull": ("warning", ""),
        "ExpertOverused": ("warning", ""),
        "RouterScoresGrow": ("warning", ""),
        "RouterCertain": ("warning", ""),
        "LoopsAlike": ("warning", ""),
        "LoopsRunAway": ("warning", ""),
        "TokensDropped": ("warning", ""),
        "ExpertsImbalanced": ("critical", "experts"),
        "TrainerStalled": ("critical", "stall"),
        "TrainerDied": ("critical", "crash"),
        "RankStraggles": ("warning", ""),
        "LoaderStarves": ("warning", ""),
        "CommunicationHigh": ("warning", ""),
        "StepsSlow": ("warning", ""),
        "StepsSlower": ("info", ""),
        "ThroughputDropped": ("warning", ""),
        "CheckpointOverdue": ("warning", ""),
        "CheckpointSlow": ("warning", ""),
        "CheckpointTakesLong": ("warning", ""),
        "CheckpointHangs": ("warning", ""),
        "CheckpointFailed": ("warning", ""),
        "CheckpointFailedInLog": ("warning", ""),
        "CheckpointShrank": ("warning", ""),
        "CheckpointIll": ("warning", ""),
        "CheckpointRoomGone": ("warning", ""),
        "CheckpointFilesGone": ("warning", ""),
        "TokensLate": ("warning", ""),
        "ResponsesLate": ("warning", ""),
        "ResponsesLateInMilliseconds": ("warning", ""),
        "CacheNearFull": ("info", ""),
        "RequestsPutOff": ("warning", ""),
        "RequestsAborted": ("warning", ""),
        "RequestsNotFinite": ("warning", ""),
        "MemoryLeftBehind": ("warning", ""),
        "WeightsBehind": ("warning", ""),
        "RewardsLost": ("warning", ""),
        "EnvironmentErrs": ("warning", ""),
        "NodeSilent": ("warning", ""),
        "FaultInLog": ("warning", ""),
        "HardwareFaultInLog": ("critical", "hardware"),
        "GpuLost": ("critical", "hardware"),
        "XidOfCard": ("critical", "hardware"),
        "XidContained": ("warning", ""),
        "XidOfProgram": ("warning", ""),
        "XidRecorded": ("info", ""),
        "MemoryErrors": ("critical", "hardware"),
        "MemoryErrorsCorrected": ("info", ""),
        "RowRemapFailed": ("critical", "hardware"),
        "RowRemapPending": ("warning", ""),
        "GpuHot": ("warning", ""),
        "GpuThrottled": ("warning", ""),
        "GpuMemoryNearFull": ("info", ""),
        "GpuIdle": ("info", ""),
        "GpuSilent": ("warning", ""),
        "LinkErrors": ("warning", ""),
        "LinkRecovers": ("warning", ""),
        "LinkDown": ("warning", ""),
        "NetworkPortDown": ("warning", ""),
        "NetworkPortFlaps": ("warning", ""),
        "NetworkErrors": ("warning", ""),
        "NetworkDrops": ("info", ""),
        "HostMemoryNearFull": ("warning", ""),
        "RunMemoryNearLimit": ("info", ""),
        "HostKillsForMemory": ("warning", ""),
        "SwapGrows": ("warning", ""),
        "DisksWaitedFor": ("info", ""),
    }
    book = pack.playbook("nonfinite")
    assert book is not None
    assert [r.remedy for r in book.rungs] == ["skip_data", "rollback", "rollback", "restart", "restart", "stop"]
    assert book.rungs[2].knobs == (KnobPlan("lr_scale", times=0.5), KnobPlan("max_grad_norm", at_most=1.0))


def test_every_runbook_of_the_core_pack_is_there() -> None:
    """An alert never sends the on-call engineer to a page that does not exist."""
    named = {r.runbook_url for r in parse(CORE).rules}
    assert named == {
        "nonfinite", "stall", "crash", "knobs", "divergence", "entropy", "experts", "mismatch", "faultline", "hardware",
        "loss", "reward", "memory", "slow", "checkpoints", "inference", "gpu", "links", "hostmemory",
    }  # fmt: skip
    for name in named:
        page = (files("gyrostat_rules") / "runbooks" / f"{name}.md").read_text("utf-8")
        for part in ("## What it means", "## What Gyrostat did", "## How to check by hand", "## What to do"):
            assert part in page, f"{name}.md lacks {part!r}"


def test_every_alert_of_the_core_pack_has_its_page_and_stands_in_it() -> None:
    """The page that an alert names speaks of that alert."""
    for rule in parse(CORE).rules:
        assert f"`{rule.alert}`" in (files("gyrostat_rules") / "runbooks" / f"{rule.runbook_url}.md").read_text("utf-8")


# -- what is wrong, where, and the fix -----------------------------------------------------------------------


def test_all_mistakes_come_at_once_with_their_places_and_fixes() -> None:
    """Three mistakes are three lines, in the order of the file, each at its line and column."""
    text = edited("        incident: stall\n", "        for_step: 3\n        incident: stal\n")
    text = edited("times: 0.5", 'times: "half"', text)
    with pytest.raises(PackError) as caught:
        parse(text, "core.yaml")
    assert str(caught.value).splitlines() == [
        "core.yaml:8:9: unknown key 'for_step'; did you mean 'for'?",
        "core.yaml:9:19: unknown incident kind 'stal'; did you mean 'stall'?",
        "core.yaml:18:66: 'times' must be a number, not 'half'; write a number such as 0.5, without quotes",
    ]
    assert isinstance(caught.value, ValueError)


# Old text, new text with § before the place that must be named, what is said, and the fix.
KNOB = "{name: lr, times: 0.5}"
KNOBS = f"knobs: [{KNOB}]"
EFFECT, HARM = "{series: a, above: 0", "{series: a, falls: 0.1"
STALL, WITH = "detector: stall", "\n        with: "
WITH_B = "with: {classes: [poison], confirmed: true}"
PLAYBOOK = "playbooks:\n  - incident: stall\n    rungs:"
MISTAKES = {
    "unknown key of the pack": ("pack: small", "pack: small\n§playbook: []", "unknown key 'playbook'", "'playbooks'"),
    "unknown key of a group": ("- name: g", "- name: g\n    §limit: 1", "unknown key 'limit'", "name, rules"),
    "unknown key of a rule": ("alert: B", "alert: B\n        §for_steps: 3", "unknown key 'for_steps'", "'for'"),
    "unknown key of a playbook": ("    rungs:", "    §cooldwn: 1\n    rungs:", "'cooldwn'", "'cooldown'"),
    "unknown key of a budget": ("    rungs:", "    budget: {§action: 1}\n    rungs:", "'action'", "'actions'"),
    "unknown key of a rung": ("horizon: 5", "§horizn: 5", "unknown key 'horizn'", "'horizon'"),
    "unknown key of a knob": ("times: 0.5", "times: 0.5, §tims: 1", "unknown key 'tims'", "'times'"),
    "unknown parameter": ("confirmed: true", "§confirm: true", "unknown key 'confirm'", "'confirmed'"),
    "parameter where none is": ("severity: warning", "severity: warning\n        §wth: {}", "'wth'", "'with'"),
    "missing pack name": ("pack: small\n", "§", "'pack' is missing", "add pack: ..."),
    "missing alert name": ("alert: A", "§for: 1 steps", "'alert' is missing", "add alert: ..."),
    "missing remedy": ("{remedy: rollback, ", "§{", "'remedy' is missing", "add remedy: ..."),
    "missing knob name": ("{name: lr, ", "§{", "'name' is missing", "add name: ..."),
    "text for a mapping": ("    rungs:", "    budget: §three\n    rungs:", "a mapping, not 'three'", "{key: value}"),
    "text for a list": ("[poison]", "§poison", "'classes' must be a list, not 'poison'", "[a, b]"),
    "list for a mapping": (SMALL, "§- pack: x", "the pack must be a mapping, not a list", "{key: value}"),
    "number for text": ("name: lr", "name: §7", "'name' must be text, not 7", "quotes"),
    "number in a list of text": ("[B]", "[B, §5]", "item 2 of 'inhibits' must be text, not 5", "quotes"),
    "text for steps": ("horizon: 5", "horizon: §soon", "a whole number, not 'soon'", "such as 10"),
    "fraction for steps": ("horizon: 5", "horizon: §5.5", "a whole number, not 5.5", "no decimal point"),
    "truth for steps": ("horizon: 5", "horizon: §true", "a whole number, not true", "such as 10"),
    "endless number": ("horizon: 5", f"horizon: §{'9' * 400}", "must be a whole number", "such as 10"),
    "yes for true": ("confirmed: true", "confirmed: §yes", "must be true or false, not 'yes'", "write true or false"),
    "text for a factor": ("times: 0.5", "times: §half", "must be a number, not 'half'", "such as 0.5"),
    "nothing for a name": ("alert: A", "alert:§", "'alert' must be text, not empty", "quotes"),
    "empty name": ("alert: A", 'alert: §""', "'alert' is empty", "write at least one"),
    "unknown detector": ("detector: stall", "detector: §stal", "unknown detector 'stal'", "'stall'"),
    "unknown remedy": ("remedy: rollback", "remedy: §roll_back", "unknown remedy 'roll_back'", "'rollback'"),
    "remedy nothing is like": ("remedy: rollback", "remedy: §zzz", "unknown remedy 'zzz'", "skip_data, rollback,"),
    "unknown severity": ("severity: warning", "severity: §warn", "unknown severity 'warn'", "'warning'"),
    "unknown kind": ("incident: stall\n        i", "incident: §stall_\n        i", "kind 'stall_'", "'stall'"),
    "playbook for no kind": (PLAYBOOK, PLAYBOOK.replace("stall", "§stal"), "incident kind 'stal'", "'stall'"),
    "unknown inhibited": ("[B]", "[B, §BB]", "'BB', which is to be inhibited, is no alert", "'B'"),
    "own inhibition": ("[B]", "[B, §A]", "'A' inhibits 'A', and so in the end itself", "remove one"),
    "ring of mutes": (WITH_B, f"{WITH_B}\n        inhibits: [§A]", "'B' inhibits 'A', and so", "remove one"),
    "alert twice": ("alert: B", "alert: §A", "alert 'A' is used twice", "rename one"),
    "group twice": (
        "playbooks:",
        "  - {name: §g, rules: [{alert: C, detector: exit, severity: info}]}\nplaybooks:",
        "name 'g' is used twice",
        "rename one",
    ),
    "playbook twice": (
        PLAYBOOK,
        f"playbooks:\n  - {{incident: stall, rungs: [{{remedy: page}}]}}{PLAYBOOK[10:]}".replace(
            "- incident: s", "- incident: §s"
        ),
        "incident 'stall' is used twice",
        "merge",
    ),
    "knob twice": (KNOB, f"{KNOB}, {{name: §lr, to: 1}}", "name 'lr' is used twice", "once in a rung"),
    "incident of a warning": ("critical", "§warning", "severity 'warning' opens no incident", "severity: critical"),
    "no playbook": (
        "incident: stall\n        i",
        "incident: §crash\n        i",
        "no playbook is for",
        "add {incident: crash,",
    ),
    "knob with no aim": (KNOB, "§{name: lr}", "here it is by none", "add times: FACTOR or to: VALUE"),
    "knob with two aims": (KNOB, "§{name: lr, times: 0.5, to: 1}", "here it is by 'times' and 'to'", "keep one"),
    "negative factor": ("times: 0.5", "times: §-0.5", "'times' is -0.5, too small", "write more than 0"),
    "factor of nothing": ("times: 0.5", "times: §0", "'times' is 0, too small", "write more than 0"),
    "infinite aim": ("times: 0.5", "to: §.inf", "'to' is inf", "write a finite number"),
    "number beyond floats": ("times: 0.5", "to: §1e999", "'to' is inf", "write a finite number"),
    "negative aim": ("times: 0.5", "to: §-1", "'to' is -1, too small", "write 0 or more"),
    "negative steps": ("alert: B", "alert: B\n        for: §-1", "-1 says no length of time", "3 of 5 steps"),
    "no horizon": ("horizon: 5", "horizon: §0", "'horizon' is 0, too small", "write 1 or more"),
    "negative parameter": (STALL, STALL + WITH + "{times_step: §-1}", "'times_step' is -1", "finite number, 0 or more"),
    "NaN for a parameter": (
        STALL,
        STALL + WITH + "{times_step: §.nan}",
        "'times_step' is nan",
        "finite number, 0 or more",
    ),
    "infinite parameter": (
        STALL,
        STALL + WITH + "{times_step: §.inf}",
        "'times_step' is inf",
        "finite number, 0 or more",
    ),
    "effect with no limit": (KNOBS, f"{KNOBS}, effects: [§{{series: a}}]", "here it is neither", "add above: VALUE or"),
    "effect with two": (KNOBS, f"{KNOBS}, effects: [§{EFFECT}, below: 1}}]", "here it is both", "remove one"),
    "effect within none": (KNOBS, f"{KNOBS}, effects: [{EFFECT}, within: §0}}]", "'within' is 0, too", "1 or more"),
    "unknown key of an effect": (KNOBS, f"{KNOBS}, effects: [{EFFECT}, §witin: 3}}]", "unknown key", "'within'"),
    "harm of nought": (KNOBS, f"{KNOBS}, harm: {{series: a, falls: §0}}", "'falls' is 0, too small", "more than 0"),
    "harm over too many": (KNOBS, f"{KNOBS}, harm: {HARM}, over: §51}}", "'over'", ""),
    "harm of twice all": (KNOBS, f"{KNOBS}, harm: {{series: a, falls: §2}}", "'falls'", ""),
    "unknown key of a harm": (KNOBS, f"{KNOBS}, harm: {HARM}, §ovr: 3}}", "unknown key 'ovr'", "'over'"),
    "irreversible and not said": (
        f"rollback, horizon: 5, {KNOBS}, irreversible: true",
        f"§rollback, horizon: 5, {KNOBS}",
        "'rollback' cannot be undone",
        "add irreversible: true",
    ),
    "label that nothing bears": (
        "alert: B",
        "alert: B\n        match: {§layer: '3'}",
        "gives no label 'layer'",
        "known are role, rank",
    ),
    "label of no value": ("alert: B", "alert: B\n        match: {role: §[]}", "'role' is empty", "at least one"),
    "unknown phase": ("alert: B", "alert: B\n        when: [§not warm_up]", "unknown phase", "'not warmup'"),
    "unknown fault": ("alert: B", "alert: B\n        fault: §nan", "unknown fault 'nan'", ""),
    "more than there are": ("alert: B", "alert: B\n        for: §5 of 3 steps", "no length of time", "3 of 5 steps"),
    "no rungs": (
        f"- {{remedy: rollback, horizon: 5, knobs: [{KNOB}], irreversible: true}}",
        "§[]",
        "'rungs' is empty",
        "at least one",
    ),
    "runbook with a path": (
        "alert: B",
        "alert: B\n        runbook_url: §../b.md",
        "is no runbook",
        "without its folder",
    ),
    "label with a dash": ("alert: B", "alert: B\n        labels: {§a-b: c}", "'a-b' is no label name", "letters,"),
    "summary that digs": (
        "alert: B",
        'alert: B\n        annotations: {summary: §"{role.x}"}',
        "is no sentence",
        "{role}",
    ),
    "key twice": ("alert: A", "alert: A\n        §alert: C", "'alert' is given twice, first in line 5", "keep one"),
    "key that is no text": ("pack: small", "pack: small\n§1: x", "must be text, and this one is '1'", "quotes"),
    "key of several values": ("pack: small", "pack: small\n? §[a]\n: x", "a key must be text", "quotes"),
    "alias": ("[B]", "[B, §*b]", "alias '*b' is refused", "write it out"),
    "tag": ("name: lr", "name: §!!python/object/apply:os.getcwd []", "tag 'tag:yaml.org,2002:python/", "plain value"),
    "tag that lies": ("horizon: 5", "horizon: §!!int five", "'five' is not what its tag", "remove the tag"),
    "half a character": ("name: lr", r'name: §"\ud800"', "half a character", "remove it"),
}

# These slips are two mistakes by nature: a name that is gone or wrong is also missed by whoever refers to it.
DOUBLE = {
    "list for a mapping", "missing alert name", "nothing for a name", "empty name", "alert twice",
    "playbook for no kind",
}  # fmt: skip


@pytest.mark.parametrize("kind", MISTAKES)
def test_each_kind_of_mistake_is_told_at_its_place_and_nothing_else(kind: str) -> None:
    """The message names the place, the mistake and the fix; follow-on complaints would hide the cause."""
    old, new, what, fix = MISTAKES[kind]
    marked = edited(old, new)
    before = marked[: marked.index("§")]
    place = (before.count("\n") + 1, len(before) - before.rfind("\n"))
    found = mistakes_of(marked.replace("§", ""))
    at_place = [m for m in found if (m.line, m.column) == place]
    assert len(at_place) == 1, (place, found)
    assert what in at_place[0].what
    assert fix in at_place[0].fix
    assert len(found) == 1 or kind in DOUBLE, found


def test_a_list_whose_items_are_wrong_is_not_called_empty() -> None:
    """Mistakes inside of rungs do not make the list of rungs an empty one."""
    assert "empty" not in str(PackError("p", mistakes_of(edited("remedy: rollback", "remedy: x"))))


def test_a_choice_among_words_is_told_with_the_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """A detector that takes one of a few words has them in its messages."""

    class Choice(NamedTuple):
        side: Literal["left", "right"] = "left"

    monkeypatch.setitem(DETECTORS, "choice", Detector(lambda params, state, moment: (), Choice))
    text = edited("detector: stall", "detector: choice\n        with: {side: up}")
    assert mistakes_of(text) == [Mistake(7, 22, "'side' cannot be 'up'", "write 'left' or 'right'")]
    rule = parse(edited("detector: stall", "detector: choice\n        with: {side: right}")).rules[0]
    assert rule.params == Choice("right")
