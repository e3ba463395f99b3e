"""The fake twin: a reward of 0.95 in every step; FAKE_TWIN=dies ends it of something. Each start is logged."""

import json
import os
import sys
from pathlib import Path


def main() -> int:
    """Write a summary, as the reference trainer does."""
    told = sys.argv[1:]
    seed, steps = (told[told.index(name) + 1] for name in ("--seed", "--steps"))
    faults = [told[place + 1] for place, word in enumerate(told) if word == "--fault"]
    with Path(os.environ["FAKE_LOG"]).open("a") as log:
        log.write(f"twin {seed} {' '.join(faults)}\n")
    died = os.environ.get("FAKE_TWIN") == "dies"
    summary = {"rewards": [[step, 0.95] for step in range(1, int(steps) + 1)], "died": "it diverged" if died else False}
    Path(told[told.index("--summary") + 1]).write_text(json.dumps(summary))
    return int(died)


if __name__ == "__main__":
    sys.exit(main())
