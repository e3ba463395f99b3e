"""Every journal that a test opens is closed behind it."""

from collections.abc import Iterator

import pytest
from journal_runs import close_all


@pytest.fixture(autouse=True)
def _closing() -> Iterator[None]:
    """SQLite connections are not left to the garbage collector, which newer Pythons warn of."""
    yield
    close_all()
