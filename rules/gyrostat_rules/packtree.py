"""Tree: the text of a pack as plain values, with the line and column of each of them.

Only what a pack needs of YAML is read: mappings, lists, text, numbers, true, false and nothing, spelled as in
YAML 1.2 (``1e-3`` is a number, ``yes`` and ``12:30`` are text). Aliases and tags are refused, for a few lines
of the former expand without bound and the latter make objects. Called by ``packfile`` alone.
"""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import yaml

from gyrostat_rules.packerrors import Mistake, show

MAX_BYTES = 1 << 20
MAX_DEPTH = 16  # the deepest key of a pack lies at 9; the composer recurses, and Python's stack is finite
MAX_VALUES = 50_000  # some 5,000 rules, read in seconds; a mebibyte of "1," would take half a minute
Path = tuple[str | int, ...]

_TAG = "tag:yaml.org,2002:"
_ALIAS = "alias"
_SURROGATE = re.compile("[\ud800-\udfff]")
_SYNTAX_FIXES = (
    ("\\t", "indent with spaces, not tabs"),
    ("mapping values are not allowed", "check the indentation, and put text that holds ': ' into quotes"),
    ("another document", "keep one document a file: remove the '---' line"),
    ("more than", "keep rules and playbooks only"),
    ("nested deeper", "close brackets where they end; no pack needs that depth"),
    ("expected", "close every bracket and quote, check the indentation, and quote text that begins with { or ["),
)


class Refused:
    """Stands for a value that was refused and reported, so that nothing else is said about it."""


REFUSED = Refused()


class Place(NamedTuple):
    """Line and column, counted from 1."""

    line: int
    column: int


class Tree(NamedTuple):
    """``values`` and ``keys``: where the value at a path begins, and its key. ``mistakes``: what was refused."""

    value: Any
    values: dict[Path, Place]
    keys: dict[Path, Place]
    mistakes: list[Mistake]

    def place(self, path: Path, *, key: bool = False) -> Place:
        """Where the value (or the key) at ``path`` stands, or else the nearest thing around it."""
        if key and path in self.keys:
            return self.keys[path]
        while path and path not in self.values:
            path = path[:-1]
        return self.values.get(path, Place(1, 1))


def read(text: str) -> Tree:
    """Read YAML; where it is not even that, the tree has no value and its mistake says why. Raises nothing."""
    tree = Tree(REFUSED, {}, {}, [])
    if (size := len(text.encode("utf-8", "surrogatepass"))) > MAX_BYTES:
        what = f"the pack is {size:,} bytes long, and at most {MAX_BYTES:,} are read"
        tree.mistakes.append(Mistake(1, 1, what, "keep rules and playbooks only"))
        return tree
    node = _compose(text, tree.mistakes)
    if node is None:
        if not tree.mistakes:
            tree.mistakes.append(Mistake(1, 1, "the pack is empty", "start with 'pack: NAME' and 'groups:'"))
        return tree
    return tree._replace(value=_plain(node, (), tree))


class _Loader(yaml.SafeLoader):
    """SafeLoader that expands no alias, and stops at MAX_DEPTH and MAX_VALUES."""

    yaml_implicit_resolvers = {}  # noqa: RUF012 - PyYAML's own way to start from none

    def __init__(self, text: str, mistakes: list[Mistake]) -> None:
        self.mistakes, self.depth, self.count = mistakes, 0, 0
        super().__init__(text)

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
        if self.check_event(yaml.AliasEvent):
            name = show("*" + self.get_event().anchor)  # type: ignore[no-untyped-call]
            self.mistakes.append(Mistake(*_place(mark), f"alias {name} is refused", "write it out here"))
            return yaml.ScalarNode(_ALIAS, "", mark, mark)
        if self.depth == MAX_DEPTH:
            raise yaml.MarkedYAMLError(None, None, f"nested deeper than {MAX_DEPTH} levels", mark)
        if self.count == MAX_VALUES:
            raise yaml.MarkedYAMLError(None, None, f"more than {MAX_VALUES:,} values", mark)
        self.depth, self.count = self.depth + 1, self.count + 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


for _kind, _pattern in (
    ("null", r"(~|null|Null|NULL|)\Z"),
    ("bool", r"(true|True|TRUE|false|False|FALSE)\Z"),
    ("int", r"[-+]?[0-9]{1,18}\Z"),  # what is longer is no number of steps; it stays text and is told so
    ("float", r"[-+]?(\.[0-9]+|[0-9]+\.[0-9]*)([eE][-+]?[0-9]+)?\Z|[-+]?[0-9]+[eE][-+]?[0-9]+\Z"),
    ("float", r"[-+]?\.(inf|Inf|INF)\Z|\.(nan|NaN|NAN)\Z"),
):
    _Loader.add_implicit_resolver(_TAG + _kind, re.compile(_pattern), None)


def _compose(text: str, mistakes: list[Mistake]) -> yaml.Node | None:
    """The root node, or None and a mistake."""
    loader = None
    try:
        loader = _Loader(text, mistakes)
        return loader.get_single_node()
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        place = Place(before.count("\n") + 1, error.position - before.rfind("\n"))
        code = error.character if isinstance(error.character, int) else ord(error.character)
        mistakes[:] = [Mistake(*place, f"character U+{code:04X} cannot stand in YAML", "remove it")]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        mistakes[:] = [_syntax(_place(mark) if mark else Place(1, 1), str(error.problem or error.context))]
    except (ValueError, OverflowError) as error:  # PyYAML on "\UFFFFFFFF" and the like: a number out of range
        place = _place(loader.get_mark()) if loader else Place(1, 1)
        mistakes[:] = [_syntax(place, str(error))]
    return None


def _syntax(place: Place, problem: str) -> Mistake:
    fix = next((fix for part, fix in _SYNTAX_FIXES if part in problem), "correct the spelling here")
    return Mistake(*place, f"this cannot be read: {problem}", fix)


def _place(mark: Any) -> Place:
    return Place(mark.line + 1, mark.column + 1)


def _plain(node: yaml.Node, path: Path, tree: Tree) -> Any:
    tree.values[path] = place = _place(node.start_mark)
    if isinstance(node, yaml.MappingNode) and node.tag == _TAG + "map":
        return _mapping(node, path, tree)
    if isinstance(node, yaml.SequenceNode) and node.tag == _TAG + "seq":
        return tuple(_plain(item, (*path, i), tree) for i, item in enumerate(node.value))
    if isinstance(node, yaml.ScalarNode) and node.tag in _SCALARS:
        return _scalar(node, place, tree)
    if node.tag != _ALIAS:
        tree.mistakes.append(Mistake(*place, f"tag {show(node.tag)} is refused", "write a plain value"))
    return REFUSED


def _mapping(node: yaml.MappingNode, path: Path, tree: Tree) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key = _key(key_node, tree)
        if key in out:
            what = f"key {show(key)} is given twice, first in line {tree.keys[(*path, key)].line}"
            tree.mistakes.append(Mistake(*_place(key_node.start_mark), what, "keep one of them"))
        elif key is not None:
            tree.keys[(*path, key)] = _place(key_node.start_mark)
            out[key] = _plain(value_node, (*path, key), tree)
    return out


def _key(node: yaml.Node, tree: Tree) -> str | None:
    """The key, or None where it was refused."""
    place = _place(node.start_mark)
    if isinstance(node, yaml.ScalarNode) and node.tag == _TAG + "str":
        key = _scalar(node, place, tree)
        return key if isinstance(key, str) else None
    if node.tag != _ALIAS:
        shown = show(node.value) if isinstance(node, yaml.ScalarNode) else "made of several values"
        tree.mistakes.append(Mistake(*place, f"a key must be text, and this one is {shown}", "put it into quotes"))
    return None


def _scalar(node: yaml.ScalarNode, place: Place, tree: Tree) -> Any:
    if _SURROGATE.search(node.value):
        tree.mistakes.append(Mistake(*place, "half a character (a surrogate) is in this text", "remove it"))
        return REFUSED
    try:
        return _SCALARS[node.tag](node.value)
    except (ValueError, KeyError):
        what = f"{show(node.value)} is not what its tag {show(node.tag)} says"
        tree.mistakes.append(Mistake(*place, what, "remove the tag"))
        return REFUSED


def _whole(text: str) -> int:
    if len(text) > 19:  # only under an explicit tag; a thousand digits would cost whoever prints them
        raise ValueError(text)
    return int(text)


_SCALARS: dict[str, Callable[[str], Any]] = {
    _TAG + "str": str,
    _TAG + "null": lambda _: None,
    _TAG + "bool": lambda text: {"true": True, "false": False}[text.lower()],
    _TAG + "int": _whole,
    _TAG + "float": lambda text: float(text.lower().replace(".inf", "inf").replace(".nan", "nan")),
}
