"""Write the boards' JSON: ``python dashboards/grafana/generate.py``; with ``--check``, only say which are not fresh.

Exit status: 0 where all is written or fresh, 1 where a file is not what the program makes, 2 for wrong arguments.
"""

import argparse
import sys
from pathlib import Path

from board import rendered
from boards import BOARDS

FOLDER = Path(__file__).resolve().parent / "json"


def main() -> int:
    """Run the program; returns the exit status."""
    parser = argparse.ArgumentParser(description="Write the Grafana boards' JSON.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a file is not fresh")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the files are (default: json/ beside this)")
    asked = parser.parse_args()
    made = {asked.folder / f"{board.uid}.json": rendered(board) for board in BOARDS}
    stale = [path for path, text in made.items() if not path.is_file() or path.read_text(encoding="utf-8") != text]
    stale += [path for path in asked.folder.glob("*.json") if path not in made]
    if asked.check:
        for path in stale:
            print(f"{path} is not what generate.py makes; run it again", file=sys.stderr)
        return int(bool(stale))
    asked.folder.mkdir(parents=True, exist_ok=True)
    for path, text in made.items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
