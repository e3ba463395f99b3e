"""Several packs in one text, parted by ``---`` lines as YAML parts documents, read as one pack.

Each is read by itself, so that a slip in one hides nothing in another, and then their groups and playbooks stand in one
tree, so that names are looked for in all of them. Called by ``packfile`` alone.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from gyrostat_rules.packtree import REFUSED, Path, Place, Tree, read

MOST = 64  # marks in one text
LISTS = ("groups", "playbooks")  # what is added up; everything else is the first one's
_MARK = re.compile(r"^---[ \t]*$", re.MULTILINE)
_PARTS = "\n---\n"


def join(texts: Sequence[str]) -> str:
    """The text that says them all."""
    return _PARTS.join(text.rstrip("\n") for text in texts) + "\n"


def read_all(text: str) -> Tree:
    """The tree of all packs in ``text``, places being those in the whole of it."""
    marks = list(_MARK.finditer(text))
    if len(marks) > MOST:
        return read(text)  # which says that there is another document
    trees = list(_trees(text, marks))
    return trees[0] if len(trees) == 1 else _merged(trees)


def _trees(text: str, marks: Sequence[re.Match[str]]) -> Iterator[Tree]:
    """One for each pack; a first or last that is empty is none. Lines before it are kept as such, for places."""
    begin = 0
    ends = [*marks, None]
    for end in ends:
        part = text[begin : end.start() if end else len(text)]
        if part.strip() or len(ends) == 1:
            yield read("\n" * text.count("\n", 0, begin) + part if begin else part)
        begin = end.end() if end else begin


def _merged(trees: Sequence[Tree]) -> Tree:
    value: dict[str, object] = {}
    places: dict[Path, Place] = {}
    keys: dict[Path, Place] = {}
    names = []
    for tree in trees:
        if not isinstance(tree.value, dict):
            if tree.value is not REFUSED:  # no pack at all: its shape is told as if it stood alone
                return tree
            continue
        before = {name: len(_list(value, name)) for name in LISTS}
        for name, found in tree.value.items():
            value[name] = (*_list(value, name), *_list(tree.value, name)) if name in LISTS else value.get(name, found)
        names.append(tree.value.get("pack"))
        for moved, old in ((places, tree.values), (keys, tree.keys)):
            for path, place in old.items():
                moved.setdefault(_moved(path, before), place)
    if all(isinstance(name, str) for name in names):
        value["pack"] = ", ".join(map(str, names))
    else:
        value.pop("pack", None)
    return Tree(value or REFUSED, places, keys, [m for tree in trees for m in tree.mistakes])


def _list(value: Mapping[str, object], name: str) -> tuple[object, ...]:
    found = value.get(name, ())
    return found if isinstance(found, tuple) else ()


def _moved(path: Path, before: Mapping[str, int]) -> Path:
    """Where what stood at ``path`` of one pack stands among all of them."""
    if len(path) > 1 and path[0] in LISTS and isinstance(path[1], int):
        return path[0], path[1] + before[str(path[0])], *path[2:]
    return path
