"""What a rung of a pack file must show and may cost: how it is read, and what is said of mistakes in it."""

import pytest

from gyrostat_rules.pack import Effect, Harm, KnobPlan, Rung
from gyrostat_rules.packerrors import Mistake
from gyrostat_rules.packfile import PackError, parse

PACK = """\
pack: small
groups:
  - {name: g, rules: [{alert: A, detector: stall, severity: critical, incident: stall}]}
playbooks:
  - incident: stall
    rungs:
      - {remedy: turn, horizon: 5, MORE}
"""
KNOB = "knobs: [{name: lr, times: 0.5}]"


def mistakes(more: str) -> list[Mistake]:
    """What is said of a rung that must not parse."""
    with pytest.raises(PackError) as caught:
        parse(PACK.replace("MORE", more), "p.yaml")
    return caught.value.mistakes


@pytest.mark.parametrize(
    ("more", "rung"),
    [
        pytest.param(KNOB, Rung("turn", 5, (KnobPlan("lr", 0.5),)), id="neither"),
        pytest.param(
            "settle: 7, knobs: [{name: lr, to: 0, keep: true}, {name: b, times: 2, keep: false}],"
            " effects: [{series: a, below: 2.5}, {series: d, above: 1}], harm: {series: c, falls: 0.25, over: 4}",
            Rung("turn", 5, (KnobPlan("lr", to=0.0, keep=True), KnobPlan("b", 2.0)), 7,
                 (Effect("a", None, 2.5), Effect("d", 1.0)), Harm("c", 0.25, 4)),
            id="both",
        ),
        pytest.param(
            f"{KNOB}, effects: [{{series: a, above: 0, within: 9}}], harm: {{series: c, falls: 1}}",
            Rung("turn", 5, (KnobPlan("lr", 0.5),), 0, (Effect("a", 0.0, None, 9),), Harm("c", 1.0, 10)),
            id="at their limits",
        ),
    ],
)  # fmt: skip
def test_what_a_rung_must_show_and_may_cost_is_read(more: str, rung: Rung) -> None:
    """Effect, harm and keep are not mixed up; what is left out has the declared default."""
    assert parse(PACK.replace("MORE", more)).playbooks[0].rungs == (rung,)


# What is written, § before the place that must be named; what is said; the fix.
MISTAKES = {
    "effect without a series": ("effects: [§{above: 0}]", "'series' is missing", "add series: ..."),
    "effect of no name": ('effects: [{series: §"", above: 0}]', "'series' is empty", "write at least one"),
    "endless effect": ("effects: [{series: a, above: §.inf}]", "'above' is inf", "write a finite number"),
    "effect below nothing": ("effects: [{series: a, below: §-1}]", "'below' is -1, too small", "write 0 or more"),
    "text for an effect": ("effects: §much", "'effects' must be a list, not 'much'", "[a, b]"),
    "mapping for a list": ("effects: §{series: a, above: 0}", "'effects' must be a list, not a mapping", "[a, b]"),
    "text in the list": ("effects: [§a]", "item 1 of 'effects' must be a mapping, not 'a'", "{key: value}"),
    "the second effect": ("effects: [{series: a, above: 0}, §{series: b}]", "here it is neither", "add above: VALUE"),
    "effect, not effects": ("§effect: {series: a, above: 0}", "unknown key 'effect'", "did you mean 'effects'?"),
    "text for steps": ("effects: [{series: a, above: 0, within: §soon}]", "a whole number, not 'soon'", "such as 10"),
    "harm without a series": ("harm: §{falls: 0.1}", "'series' is missing", "add series: ..."),
    "harm without a size": ("harm: §{series: a}", "'falls' is missing", "add falls: ..."),
    "negative harm": ("harm: {series: a, falls: §-0.1}", "'falls' is -0.1, too small", "write more than 0"),
    "NaN for a harm": ("harm: {series: a, falls: §.nan}", "'falls' is nan", "write"),
    "harm over too few": ("harm: {series: a, falls: 0.1, over: §2}", "'over' is 2, too small", "write 3 or more"),
    "unknown key of a harm": ("harm: {series: a, falls: 0.1, §ovr: 4}", "unknown key 'ovr'", "'over'"),
    "share of all and more": ("harm: {series: a, falls: §1.5}", "'falls' is 1.5, too large", "write 1 or less"),
    "harm over too many": ("harm: {series: a, falls: 1, over: §51}", "'over' is 51, too large", "write 50 or less"),
    "yes for keep": ("knobs: [{name: b, to: 1, keep: §yes}]", "true or false, not 'yes'", "write true or false"),
}


@pytest.mark.parametrize("kind", MISTAKES)
def test_each_mistake_is_told_at_its_place_with_the_fix(kind: str) -> None:
    """Line, column, what and what to write instead, in words that speak of the file; one mistake is one line."""
    written, what, fix = MISTAKES[kind]
    text = written if written.startswith("knobs") else f"{KNOB}, {written}"
    (found,) = mistakes(text.replace("§", ""))
    column = PACK.splitlines()[6].index("MORE") + text.index("§") + 1
    assert found[:2] == (7, column)
    assert what in found.what and fix in found.fix
