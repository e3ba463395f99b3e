"""The text of a pack: what cannot be read at all, where it fails, and what is refused for safety."""

import pytest

from gyrostat_rules import packtree
from gyrostat_rules.packerrors import Mistake
from gyrostat_rules.packfile import PackError, parse


def mistakes_of(text: str) -> list[Mistake]:
    """All mistakes of a text that must not parse."""
    with pytest.raises(PackError) as caught:
        parse(text)
    return caught.value.mistakes


SYNTAX = {
    "tab": ("pack: x\n\tgroups: []\n", 2, 1, "tabs"),
    "open bracket": ("pack: [x\n", 2, 1, "close every bracket"),
    "open quote": ('pack: "x\n', 2, 1, "quote"),
    "text that begins with a brace": ("pack: x\ngroups:\n  - summary: {role} died\n", 3, 21, "quote"),
    "colon in text": ("pack: a: b\n", 1, 8, "quotes"),
    "control character": ("pack: x\ngroups: \x00\n", 2, 9, "remove it"),
    "surrogate": ("pack: \ud800", 1, 7, "remove it"),
    "character beyond Unicode": ('pack: "\\UFFFFFFFF"', 1, 10, "correct the spelling"),
    "nothing": ("", 1, 1, "start with 'pack: NAME'"),
    "comments alone": ("# nothing\n", 1, 1, "start with 'pack: NAME'"),
    "bottomless": ("[" * 5000, 1, 17, "no pack needs that depth"),
    "too long": ("pack: x\n#" + "é" * (1 << 19), 1, 1, "rules and playbooks only"),
}


@pytest.mark.parametrize(("text", "line", "column", "fix"), SYNTAX.values(), ids=SYNTAX)
def test_text_that_is_no_pack_at_all_is_one_mistake_at_its_place(text: str, line: int, column: int, fix: str) -> None:
    """Where not even YAML can be read, the first thing that cannot is named, and what usually helps."""
    (found,) = mistakes_of(text)
    assert (found.line, found.column) == (line, column), found
    assert fix in found.fix, found


def test_aliases_that_would_expand_without_bound_cost_nothing() -> None:
    """A billion laughs in nine lines is refused alias by alias."""
    lines = ["a0: &a0 [x, x]"] + [f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]" for i in range(1, 40)]
    refused = [m for m in mistakes_of("\n".join(lines)) if "alias" in m.what]
    assert len(refused) == 78


def test_more_values_than_a_pack_can_need_are_not_read_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that would take minutes to read is turned away where the limit is passed."""
    monkeypatch.setattr(packtree, "MAX_VALUES", 3)
    assert mistakes_of("[1, 2, 3, 4]") == [
        Mistake(1, 8, "this cannot be read: more than 3 values", "keep rules and playbooks only")
    ]


def test_a_mistake_among_thousands_of_names_lists_a_few() -> None:
    """A message stays readable, and is made at once, however many names there are to choose from."""
    rules = "".join(f"  - {{alert: N{i}, detector: exit, severity: info, inhibits: [zz]}}\n" for i in range(300))
    found = mistakes_of(f"pack: x\ngroups:\n- name: g\n  rules:\n{rules}")
    assert len(found) == 300
    assert found[0].fix.endswith("N18, N19 and 280 more")


def test_a_page_of_text_where_a_key_belongs_is_cut_in_the_message() -> None:
    """A message is one line, also where what it is about is not."""
    assert all(len(m.what) < 120 for m in mistakes_of("k" * 500 + ": 1\npack: " + "[x]" * 100))
