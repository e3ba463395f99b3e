"""docs/integrations.md: what it names is there, and what was not run says so itself."""

import importlib.util
import re
from pathlib import Path

DOCS = Path(__file__).parents[4] / "docs"
PAGE = (DOCS / "integrations.md").read_text(encoding="utf-8")
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("| ")]


def test_every_module_and_page_is_there() -> None:
    """A reader who follows the table arrives."""
    modules = set(re.findall(r"gyrostat\.integrations\.\w+", PAGE))
    assert {"gyrostat.integrations.lightning", "gyrostat.integrations.verl"} <= modules
    assert [name for name in modules if importlib.util.find_spec(name) is None] == []
    assert [link for link in re.findall(r"\]\(([\w./]+)\)", PAGE) if not (DOCS / link).is_file()] == []


def test_what_was_not_run_says_so_in_its_first_line() -> None:
    """A "no" in the table and the file's own first line agree, and so do those that are run."""
    for row in ROWS[1:]:
        files = re.findall(r"\]\((examples/[\w.]+)\)", row[1])
        paths = [DOCS / name for name in files]
        for name in re.findall(r"gyrostat\.integrations\.\w+", row[1]):
            spec = importlib.util.find_spec(name)
            assert spec is not None
            assert spec.origin is not None
            paths.append(Path(spec.origin))
        said = {path.read_text(encoding="utf-8").startswith('"""NOT RUN IN A REAL ') for path in paths}
        assert said <= {row[4].startswith("no")}, row[0]
    assert sum(row[4].startswith("no") for row in ROWS[1:]) == 3
