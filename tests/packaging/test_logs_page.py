"""docs/logs.md names every format that is read, as the code does."""

import re
from pathlib import Path

from gyrostat_agent.sources.logs.table import FORMATS

PAGE = (Path(__file__).parents[2] / "docs" / "logs.md").read_text(encoding="utf-8")


def test_the_table_of_formats_is_the_one_in_the_code() -> None:
    """Name, title and files of each, in the order in which they are asked; none more."""
    rows = re.findall(r"^\| `([\w-]+)` \| (.+?) \| (.+?) \|$", PAGE, re.MULTILINE)
    told = [(f.name, f.title, ", ".join(f"`{name}`" for name in f.files) or "-") for f in FORMATS.values()]
    assert rows == told
