"""Several packs as one: what stands in one may name what stands in another, and a slip is told at its line."""

import pytest

from gyrostat_rules.packfile import PackError, parse
from gyrostat_rules.packmerge import join

FIRST = """\
pack: first
groups:
  - name: a
    rules:
      - {alert: A, detector: stall, severity: critical, incident: stall, inhibits: [B]}
"""
SECOND = """\
pack: second
groups:
  - name: b
    rules:
      - {alert: B, detector: exit, severity: warning}
playbooks:
  - {incident: stall, rungs: [{remedy: page}]}
"""


def mistakes_of(text: str) -> list[str]:
    """The mistakes of a text that must not parse, a line each."""
    with pytest.raises(PackError) as caught:
        parse(text, "p")
    return str(caught.value).splitlines()


def test_packs_stand_together() -> None:
    """Rules in the order of the packs; a playbook, and an alert that is inhibited, may stand in another."""
    pack = parse(join([FIRST, SECOND]))
    assert (pack.name, [rule.alert for rule in pack.rules]) == ("first, second", ["A", "B"])
    assert [book.incident for book in pack.playbooks] == ["stall"]


def test_a_first_mark_and_a_last_one_part_nothing() -> None:
    """Editors and templates leave them there."""
    assert parse(f"---\n{join([FIRST, SECOND])}---\n") == parse(join([FIRST, SECOND]))


@pytest.mark.parametrize(
    ("second", "told"),
    [
        (SECOND.replace("alert: B", "alert: A"), ["p:11:17: alert 'A' is used twice"]),
        (SECOND.replace("name: b", "name: a"), ["p:9:11: name 'a' is used twice"]),
        (SECOND.replace("exit", "exxit"), ["p:11:30: unknown detector 'exxit'"]),
        (SECOND.replace("remedy: page", "remedy: pag"), ["p:13:40: unknown remedy 'pag'"]),
        (SECOND.replace("groups:", "grups:"), ["p:8:1: unknown key 'grups'"]),
        (SECOND.replace("pack: second", ""), ["'pack' is missing"]),
        (SECOND.replace("[{", "{"), ["p:13:"]),
        ("- a list\n", ["must be a mapping"]),
    ],
    ids=["alert", "group", "detector", "remedy", "key", "no name", "syntax", "no pack"],
)
def test_a_slip_in_the_second_is_told_at_its_line(second: str, told: list[str]) -> None:
    """Lines are those of the whole text; names are looked for in all packs."""
    found = mistakes_of(join([FIRST, second]))
    assert all(any(part in line for line in found) for part in told), found


def test_slips_in_both_are_told_at_once() -> None:
    """Nobody mends one file to be told of the next."""
    found = mistakes_of(join([FIRST.replace("stall,", "stal,", 1), SECOND.replace("exit", "exxit")]))
    assert ["stal" in found[0], "exxit" in found[-1]] == [True, True]


def test_thousands_of_marks_are_one_mistake() -> None:
    """A text made to be slow is refused at once."""
    assert len(mistakes_of("---\n" * 200_000)) == 1
