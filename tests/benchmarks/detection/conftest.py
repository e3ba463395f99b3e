"""The corpus is made by scripts, not by a package: the tests find them where they lie."""

import sys
from pathlib import Path

FOLDER = str(Path(__file__).parents[3] / "benchmarks" / "detection")
if FOLDER not in sys.path:  # behind everything else: a script's name must hide no module
    sys.path.append(FOLDER)
