"""Rows: what each seed came to, the file that keeps them, and what they come to together."""

import json
import math
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from chaos.verdict import HELD, LOST, MENDED, WORSE

BEGIN, END = "<!-- chaos: begin -->", "<!-- chaos: end -->"  # between which docs/chaos.md shows the table
_Z = 1.959964  # 95 %, two-sided


class Row(NamedTuple):
    """One run. ``kind``: ``chaos`` or ``clean``. ``reward`` and ``twin``: 0 to 1, None where it died or was not run.

    ``sent``: actions that did something to the run. ``code``: a name of the code that played it.
    """

    kind: str
    seed: int
    draw: str
    mendable: bool
    verdict: str
    why: str
    reward: float | None
    twin: float | None
    steps: int
    sent: int
    pods: int
    gap: float
    seconds: float
    code: str

    @property
    def key(self) -> tuple[str, int]:
        """What there is one row of."""
        return self.kind, self.seed


class RowsError(Exception):
    """A results file that cannot be used: which, why, what to do."""


def read(path: Path) -> list[Row]:
    """The rows of a results file, none where there is no such file; raises RowsError."""
    try:
        return [Row(**one) for one in json.loads(path.read_text(encoding="utf-8"))["rows"]]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise RowsError(f"{path}: {error.strerror}; give a file that can be read with --json") from None
    except (ValueError, KeyError, TypeError):
        raise RowsError(f"{path} holds no results of chaos runs; give another file, or delete it") from None


def write(path: Path, rows: Iterable[Row]) -> None:
    """Replace a results file, a line for each row; raises OSError."""
    ordered = sorted(rows, key=lambda row: row.key)
    lines = ",\n ".join(json.dumps(row._asdict(), allow_nan=False) for row in ordered)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}")
    summary = json.dumps(counted(ordered))
    unfinished.write_text(f'{{\n"summary": {summary},\n"rows": [\n {lines}\n]\n}}\n', encoding="utf-8")
    unfinished.replace(path)


def wilson(well: int, of: int) -> float:
    """Lower end of the 95 % interval of a share, 0 where there is nothing.

    Source: Wilson, Probable inference, JASA 22 (1927).
    """
    if not of:
        return 0.0
    share, z2 = well / of, _Z * _Z
    middle = share + z2 / (2 * of)
    spread = _Z * math.sqrt(share * (1 - share) / of + z2 / (4 * of * of))
    return (middle - spread) / (1 + z2 / of)


def counted(rows: Sequence[Row]) -> dict[str, Any]:
    """How many of each verdict, and the bound of those mended: of all, and of those that could be."""
    chaos = [row for row in rows if row.kind == "chaos"]
    could = [row for row in chaos if row.mendable]
    clean = [row for row in rows if row.kind == "clean"]
    found: dict[str, Any] = {"runs": len(chaos), "codes": sorted({row.code for row in rows})}
    found |= {word: sum(row.verdict == word for row in chaos) for word in (MENDED, HELD, WORSE, LOST)}
    found["bound"] = round(wilson(found[MENDED], len(chaos)), 4)
    found["mendable"], found["mended_of_mendable"] = len(could), sum(row.verdict == MENDED for row in could)
    found["bound_of_mendable"] = round(wilson(found["mended_of_mendable"], len(could)), 4)
    found["clean_runs"], found["clean_interventions"] = len(clean), sum(row.sent for row in clean)
    return found


def markdown(rows: Sequence[Row]) -> str:
    """The table: what came of all, and each that was not mended, with its why."""
    found = counted(rows)
    codes = found["codes"]
    played = f"One version of the code ({codes[0]})." if len(codes) == 1 else f"{len(codes)} versions of the code."
    lines = [
        f"{played} {found['runs']} runs: {found[MENDED]} mended, {found[HELD]} held, {found[WORSE]} made worse,"
        f" {found[LOST]} lost; at least {found['bound']:.1%} are mended (Wilson, 95 %).",
        f"Of {found['mendable']} that could be mended {found['mended_of_mendable']} were;"
        f" at least {found['bound_of_mendable']:.1%}.",
        f"Clean runs: {found['clean_runs']}, interventions in them: {found['clean_interventions']}.",
    ]
    misses = [row for row in rows if row.verdict != MENDED]
    if misses:
        lines += ["", "| draw | verdict | why |", "| --- | --- | --- |"]
        lines += [f"| {_cell(row.draw)} | {row.verdict} | {_cell(row.why)} |" for row in misses]
    return "\n".join(lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "/")
