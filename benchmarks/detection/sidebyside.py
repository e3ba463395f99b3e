"""Gyrostat and the tools that a user could pick instead, on one corpus in one run: `make bench-detection`.

    python benchmarks/detection/sidebyside.py                             public cases, 60 runs of `calibrate`
    python benchmarks/detection/sidebyside.py --split judge --runs 400 --jobs 4 --json detection.json
    python benchmarks/detection/sidebyside.py --only 3-sigma,losslint --runs 20

All see the same rows one by one, and are judged by the code of `gyrostat backtest`. Rivals that can be tuned are tried
in several settings and compared where their false alarms on healthy runs are not above ours. A tool that is not
installed is left out, and it is said so; peer_venv.py installs them. Progress goes to stderr. Exit status 1 with
--ahead where a rival is not behind on the generated runs, 2 where what was given cannot be used.
"""

import argparse
import json
import platform
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import split as splits
from generate import FEWEST, ROWS, write
from peers.roster import ROSTER
from peers.watcher import Peer
from ranking import ahead, as_json, table
from sharing import shared
from standing import OURS, Counted, Entrant, Standing, judge, ours, theirs

from gyrostat_agent.backtest.case import Case
from gyrostat_agent.backtest.corpus import RunLines, cases, index
from gyrostat_agent.backtest.run import Row, rows
from gyrostat_agent.cli.options import builtin, digest_of

PUBLIC = Path(__file__).parent / "public_cases.jsonl"
RUNS = 60
DONE, BEHIND, USAGE = 0, 1, 2
_OFTEN = 10  # runs between two words of progress


class Part(NamedTuple):
    """One corpus, and how all did on it."""

    name: str
    standings: Sequence[Standing]


def main(argv: Sequence[str] | None = None) -> int:
    """Run all on all, print a table a part and write the JSON."""
    given = _arguments(argv)
    missing = {peer.name: why for peer in ROSTER if (why := _left_out(peer, given.only))}
    for name, why in missing.items():
        print(f"left out: {name}: {why}", file=sys.stderr)
    peers = [peer for peer in ROSTER if peer.name not in missing]
    with tempfile.TemporaryDirectory() as folder:
        parts = [judged(name, path, peers, given.jobs) for name, path in corpora(given, Path(folder))]
    for part in parts:
        print("\n".join([f"\n## {part.name}\n", *table(part.standings)]))
    if given.json:
        _write(given.json, given, parts, missing)
    behind = ahead(parts[-1].standings)
    for said in behind if given.ahead else ():
        print(f"sidebyside: {said}", file=sys.stderr)
    return BEHIND if given.ahead and behind else DONE


def corpora(given: argparse.Namespace, folder: Path) -> Iterator[tuple[str, Path]]:
    """The parts of the corpus: name and file; the generated one is made anew."""
    if given.public:
        yield "public cases", PUBLIC
    made = folder / "generated.jsonl"
    with made.open("w", encoding="utf-8", newline="\n") as out:
        runs, _ = write(out, splits.planned(given.split, given.runs), given.split, given.steps)
    yield f"{runs} generated runs, split {given.split}", made


def judged(name: str, corpus: Path, peers: Sequence[Peer], jobs: int = 1) -> Part:
    """Let everybody see every run of a corpus; run by run, so that it may be longer than memory."""
    names = tuple(peer.name for peer in peers)
    standings = [Standing(entrant) for entrant in _entrants(names)]
    shared(standings, partial(_share, name, str(corpus), names), min(jobs, len(index([str(corpus)]))))
    return Part(name, standings)


def _share(name: str, corpus: str, names: Sequence[str], place: int, parts: int) -> list[Counted]:
    """Judge every so manyth run, from ``place`` on."""
    standings = [Standing(entrant) for entrant in _entrants(names)]
    runs = index([corpus])
    for done, number in enumerate(range(place, len(runs), parts), 1):
        _one(runs[number], standings)
        if done % _OFTEN == 0 or number == len(runs) - 1:
            print(f"{name}: run {number + 1} of {len(runs)}", file=sys.stderr, flush=True)
    return [standing.counted for standing in standings]


def _entrants(names: Sequence[str]) -> list[Entrant]:
    text = builtin()
    return [ours(text, digest_of(text)), *(one for peer in ROSTER if peer.name in names for one in theirs(peer))]


def _one(run: RunLines, standings: Sequence[Standing]) -> None:
    lines = cases(run)
    made: dict[str, list[Row]] = {}

    def rows_of(part: Sequence[Case]) -> Sequence[Row]:
        """The same rows for everybody, made once."""
        basis = part[0].basis
        return made[basis] if basis in made else made.setdefault(basis, list(rows(part)))

    for standing in standings:
        judge(standing, lines, rows_of)
        if standing.entrant.name == OURS and standing.broken:
            raise SystemExit(f"sidebyside: our own engine broke off on {run.run}: {standing.why}")


def _left_out(peer: Peer, only: Sequence[str]) -> str:
    return peer.missing() if not only or peer.name in only else "not among --only"


def _write(path: Path, given: argparse.Namespace, parts: Sequence[Part], missing: Mapping[str, str]) -> None:
    whole = {
        "benchmark": "detection", "split": given.split, "runs": given.runs, "steps": given.steps,
        "python": platform.python_version(), "pack": digest_of(builtin()), "left_out": missing,
        "parts": {part.name: as_json(part.standings) for part in parts},
    }  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(whole, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    add = parser.add_argument
    add("--split", choices=splits.SPLITS, default=splits.CALIBRATE, help="which seeds and families (%(default)s)")
    add("--runs", type=int, default=RUNS, help="generated runs, half of them faulty (%(default)s)")
    add("--steps", type=int, default=ROWS, help="steps of a run (%(default)s)")
    add("--no-public", dest="public", action="store_false", help="leave the public cases out")
    add("--only", type=_names, default=(), metavar="TOOL,...", help="these rivals alone")
    add("--json", type=Path, metavar="FILE", help="all settings of all, for machines")
    add("--jobs", type=int, default=1, help="processes that share the runs (%(default)s)")
    add("--ahead", action="store_true", help="exit status 1 where a rival is not behind on the generated runs")
    given = parser.parse_args(argv)
    if given.runs < 2:
        parser.error(f"--runs {given.runs}: give at least 2, one faulty and one healthy")
    if given.jobs < 1:
        parser.error(f"--jobs {given.jobs}: give at least 1")
    if given.steps < FEWEST:
        parser.error(f"--steps {given.steps}: give at least {FEWEST}, as for generate.py")
    return given


def _names(text: str) -> tuple[str, ...]:
    known = [peer.name for peer in ROSTER]
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if unknown := [name for name in names if name not in known]:
        raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: there is no such tool; known are {', '.join(known)}")
    return names


if __name__ == "__main__":
    sys.exit(main())
