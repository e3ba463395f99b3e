"""``gyrostat rules explain NAME``: what a rule is, without a run."""

import json

import pytest
from cli_runs import Run, one_line

from gyrostat_agent.cli.options import builtin
from gyrostat_agent.explain.declared import declared
from gyrostat_agent.explain.page import document, rule_lines
from gyrostat_rules.packfile import parse

PACK = parse(builtin())


@pytest.mark.parametrize("rule", PACK.rules, ids=lambda rule: rule.alert)
def test_every_rule_that_ships_is_explained(rule) -> None:  # type: ignore[no-untyped-def]
    """Each line says something, and the whole of it is one JSON document."""
    what = declared(rule, PACK)
    lines = list(rule_lines(what))
    assert all(line.text for line in lines) and what.finds and what.means and what.wants
    assert json.loads(json.dumps(document(what, None, None), allow_nan=False))["rule"]["alert"] == rule.alert
    assert bool(what.ladder) == bool(rule.incident)


def test_a_rule_is_said_in_words(cli: Run) -> None:
    """Severity, what it looks at, its parameters with those that the pack gave, whom it mutes, and the ladder."""
    status, out, err = cli("rules", "explain", "RewardCollapsed")
    words = " ".join(out.split())
    assert (status, err) == (0, "")
    for said in ("critical", "series [reward]", "ratio 0.35 (default)", "least 0.1;", "incident divergence",
                 "GradientSpike", "1. rollback: go back to a certified checkpoint", "cannot be undone"):  # fmt: skip
        assert said in words, said


def test_for_machines(cli: Run) -> None:
    """The same facts, by name."""
    told = json.loads(cli("rules", "explain", "ExpertsImbalanced", "--json")[1])["rule"]
    assert (told["for"], told["incident"], told["inhibits"]) == ("10 steps", "experts", ["ExpertsUneven"])
    assert told["parameters"]["rho_below"] == 0.3 and told["given"] == ["rho_below"]
    assert told["ladder"][0].startswith("turn: turn knobs: router_aux_coef at least 0.1, later 0.03")


@pytest.mark.parametrize(
    ("name", "near"),
    [("rewardcollapsed", "RewardCollapsed"), ("GradientSpikes", "GradientSpike"), ("zzz", "gyrostat rules list")],
    ids=["small letters", "one letter more", "nothing like it"],
)
def test_an_unknown_name(cli: Run, name: str, near: str) -> None:
    """Is met with the nearest, status 2."""
    status, out, err = cli("rules", "explain", name)
    assert (status, out) == (2, "")
    one_line(err, name, near)


def test_a_step_without_a_run(cli: Run) -> None:
    """Cannot be answered; status 2, and it says what is missing."""
    status, _, err = cli("rules", "explain", "GradientSpike", "--step", "3")
    assert status == 2
    one_line(err, "--step 3", "--run DIR")
