"""The fake demonstration. FAKE_ROWS is a JSON file: fields of rows by ``scenario seed``.

``fails`` in a row ends it there with that exit status, ``waits`` keeps it there until it is ended. Each start is a
line in the file that FAKE_LOG names.
"""

import argparse
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

PLAIN: dict[str, Any] = {
    "steps": 60, "fault_step": 21, "mended": True, "why": "all of it held", "clean": 0.97, "untreated": None,
    "treated": 0.96, "incidents": [], "lost_steps": 2, "seconds": 1.0, "went_back_to": [],
}  # fmt: skip


def main() -> int:
    """Write a row for each scenario."""
    parser = argparse.ArgumentParser()
    parser.add_argument("demo")
    for name in ("--scenario", "--json", "--out"):
        parser.add_argument(name)
    for name in ("--seeds", "--seed-from", "--steps"):
        parser.add_argument(name, type=int)
    parser.add_argument("--no-color", action="store_true")
    told = parser.parse_args()
    with Path(os.environ["FAKE_LOG"]).open("a") as log:
        log.write(f"demo {told.scenario} {told.seed_from} {told.seeds}\n")
    rows, asked = [], json.loads(Path(os.environ["FAKE_ROWS"]).read_text())
    for scenario in told.scenario.split(","):
        row = asked.get(f"{scenario} {told.seed_from}", {})
        if "fails" in row:
            print("gyrostat demo: it cannot be shown", file=sys.stderr)
            return int(row["fails"])
        if "waits" in row:
            signal.pause()
        rows.append({**PLAIN, "scenario": scenario, "seed": told.seed_from, **row})
        Path(told.json).write_text(json.dumps({"runs": rows}))
    return 0 if all(row["mended"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
