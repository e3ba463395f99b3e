"""Benchmarks are scripts, not a package: the tests find them where they lie."""

import sys
from pathlib import Path

FOLDER = str(Path(__file__).parents[2] / "benchmarks")
if FOLDER not in sys.path:  # behind everything else: a benchmark's name must hide no module
    sys.path.append(FOLDER)
