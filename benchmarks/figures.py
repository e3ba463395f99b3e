"""What the SDK's benchmarks share: quantiles, the machine's idle share, a table for people and JSON for machines."""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def arguments(doc: str) -> argparse.Namespace:
    """``--json`` prints one JSON object instead of a table; ``--quick`` takes seconds, for CI."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object, no table")
    parser.add_argument("--quick", action="store_true", help="few rounds: seconds, not minutes")
    return parser.parse_args()


def quantiles(seconds: Sequence[float]) -> dict[str, float]:
    """p50, p99 and max in microseconds."""
    ordered = sorted(seconds)
    at = {"p50": 0.5, "p99": 0.99, "max": 1.0}
    return {name: round(ordered[min(int(len(ordered) * q), len(ordered) - 1)] * 1e6, 2) for name, q in at.items()}


def idle_share(before: tuple[int, int], after: tuple[int, int]) -> float:
    """Share of all CPU time between two readings of ``cpu_ticks`` in which nobody ran."""
    return round((after[0] - before[0]) / max(after[1] - before[1], 1), 2)


def cpu_ticks() -> tuple[int, int]:
    """(idle, all) ticks of this machine since its start."""
    ticks = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return ticks[3] + ticks[4], sum(ticks)


def show(title: str, rows: Sequence[Mapping[str, Any]], result: Mapping[str, Any], as_json: bool) -> None:
    """Print the rows as a table and the result below it, or both as JSON."""
    if as_json:
        print(json.dumps({"benchmark": title, "rows": list(rows), **result}))
        return
    columns = list(dict.fromkeys(name for row in rows for name in row))
    lines = [columns, *[[str(row.get(name, "")) for name in columns] for row in rows]]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    print(title)
    for line in lines:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    for name, value in result.items():
        print(f"  {name}: {value}")
