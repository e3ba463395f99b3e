"""A rule's own ladder: `remedies` where the rule is, read as the playbook of the incident that it opens."""

import pytest

from gyrostat_rules.pack import Playbook, Rung
from gyrostat_rules.packerrors import Mistake
from gyrostat_rules.packfile import PackError, parse

PACK = """\
pack: small
groups:
  - name: g
    rules:
      - {alert: A, detector: stall, severity: critical, incident: stall, remedies: [{remedy: page, horizon: 5}]}
"""
BOOK = "playbooks: [{incident: stall, rungs: [{remedy: page}]}]\n"


def mistakes(text: str) -> list[Mistake]:
    """What is said of a pack that must not parse."""
    with pytest.raises(PackError) as caught:
        parse(text, "p.yaml")
    return caught.value.mistakes


def test_remedies_of_a_rule_are_its_incidents_playbook() -> None:
    """A rule with its ladder needs no playbook, and gets the usual budget, ceiling and cooldown."""
    assert parse(PACK).playbooks == (Playbook("stall", (Rung("page", 5),)),)


def test_a_rule_without_a_playbook_is_still_a_mistake() -> None:
    """Only a ladder that is there counts: an incident that nobody mends is told when the pack is read."""
    (mistake,) = mistakes(PACK.replace(", remedies: [{remedy: page, horizon: 5}]", ", remedies: []"))
    assert (mistake.line, mistake.what) == (5, "no playbook is for incident 'stall'")


@pytest.mark.parametrize(
    ("text", "what", "fix"),
    [
        pytest.param(
            PACK + BOOK, "incident 'stall' has its remedies in two places", "keep one playbook", id="a playbook too"
        ),
        pytest.param(
            PACK
            + "      - {alert: B, detector: exit, severity: critical, incident: stall, remedies: [{remedy: page}]}\n",
            "incident 'stall' has its remedies in two places",
            "keep one playbook",
            id="two rules",
        ),
        pytest.param(
            PACK.replace("severity: critical, incident: stall", "severity: warning"),
            "'remedies' mend an incident, and this rule opens none",
            "add incident: KIND",
            id="nothing to mend",
        ),
        pytest.param(
            PACK.replace("{remedy: page, horizon: 5}", "{remedy: turn}"),
            "'turn' turns knobs, and here are none",
            "add knobs",
            id="a rung with a mistake",
        ),
        pytest.param(
            PACK.replace("remedy: page", "remedy: rollback"),
            "'rollback' cannot be undone",
            "add irreversible: true",
            id="one that cannot be undone",
        ),
        pytest.param(
            PACK.replace("{remedy: page, horizon: 5}", "{remedy: turn, knobs: [{name: a}]}"),
            "here it is by none",
            "add times: FACTOR",
            id="a knob without an aim",
        ),
        pytest.param(PACK.replace("horizon: 5", "horizn: 5"), "unknown key 'horizn'", "horizon", id="a wrong key"),
    ],
)
def test_a_mistake_in_a_rules_ladder_is_told_with_its_fix(text: str, what: str, fix: str) -> None:
    """A rule's rungs are checked as those of a playbook are, and one incident has one ladder."""
    (mistake,) = mistakes(text)
    assert mistake.line >= 5
    assert what in mistake.what
    assert fix in mistake.fix
