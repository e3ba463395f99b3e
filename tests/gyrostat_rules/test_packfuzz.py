"""Whatever text is handed in as a pack, it parses or its mistakes are told; nothing else ever comes out."""

import json
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from run_story import CORE

from gyrostat_rules.pack import RulePack
from gyrostat_rules.packfile import PackError, parse

PARTS = list(yaml.safe_load_all(CORE))
PLAIN = {
    "pack": "all",
    **{name: [one for part in PARTS for one in part.get(name, ())] for name in ("groups", "playbooks")},
}
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["stall", "rollback"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5) | st.just("name"), inner, max_size=3)
    ),
    max_leaves=6,
)


def only_a_pack_or_its_mistakes(text: str) -> None:
    """Parse, and let only PackError pass; its places lie in the text."""
    try:
        assert isinstance(parse(text), RulePack)
    except PackError as error:
        assert error.mistakes
        assert all(m.line >= 1 and m.column >= 1 and m.what and m.fix for m in error.mistakes)
        assert str(error).isprintable() or "\n" in str(error)


@settings(max_examples=150, deadline=None)
@given(st.text() | st.text(alphabet="ab:-?[]{}&*!|>'\"%@`#,. \n\t\\u0~<=+1e\r\ufeff\x85"))
def test_any_text_parses_or_is_told_what_is_wrong(text: str) -> None:
    """No text makes the parser fail in another way."""
    only_a_pack_or_its_mistakes(text)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_damaged_core_pack_parses_or_is_told_what_is_wrong(data: st.DataObject) -> None:
    """A pack with a piece cut out or put in elsewhere is still read to the end."""
    start = data.draw(st.integers(0, len(CORE)))
    end = data.draw(st.integers(start, min(len(CORE), start + 40)))
    only_a_pack_or_its_mistakes(CORE[:start] + data.draw(st.text(max_size=6)) + CORE[end:])


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_value_in_any_place_is_told(data: st.DataObject) -> None:
    """Whatever stands where something else belongs, every check copes with it."""
    pack = json.loads(json.dumps(PLAIN))
    for _ in range(data.draw(st.integers(1, 3))):
        replace_somewhere(pack, data)
    only_a_pack_or_its_mistakes(yaml.safe_dump(pack, allow_unicode=True))


def replace_somewhere(node: Any, data: st.DataObject) -> None:
    """Put a drawn value in a drawn place of nested mappings and lists."""
    keys = list(node) if isinstance(node, dict) else list(range(len(node)))
    if not keys:
        return
    key = data.draw(st.sampled_from(keys))
    if isinstance(node[key], (dict, list)) and data.draw(st.integers(0, 4)):
        replace_somewhere(node[key], data)
    else:
        node[key] = data.draw(ANYTHING)
