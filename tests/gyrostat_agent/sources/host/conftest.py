"""A machine for a test, and a source that looks at it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from host_trees import Tree, Watching


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """A machine that is well."""
    return Tree(tmp_path)


@pytest.fixture
def watching(tree: Tree) -> Iterator[Watching]:
    """A source that has not looked yet."""
    made = Watching(tree.root)
    yield made
    made.source.close()
