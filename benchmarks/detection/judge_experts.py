"""Judge the diagnosis of experts: cases of four labels, each asked a few steps after it can be known, and macro-F1.

    python benchmarks/detection/judge_experts.py                      50 cases of each label, the judge's seeds
    python benchmarks/detection/judge_experts.py --split calibrate --json

Every record goes through the engine itself; the answer is that of `diagnosis.diagnose` behind the last one. Exit status
1 where macro-F1 is under --require.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from expert_cases import LABELS, ExpertCase, cases
from split import JUDGE, SPLITS, first_seed

from gyrostat.wire import ExpertLoad, Record
from gyrostat_rules.diagnosis import diagnose
from gyrostat_rules.engine import Engine
from gyrostat_rules.inputs import Batch

CASES, GATE = 50, 0.9


class Answer(NamedTuple):
    """What a case is, what it was called, and why."""

    label: str
    said: str
    seed: int
    note: str
    why: str


def main(argv: Sequence[str] | None = None) -> int:
    """Print macro-F1, the labels' own, and what was called wrong."""
    given = _arguments(argv)
    answers = [answered(one) for one in cases(first_seed(given.split), given.cases)]
    scores = {label: f1(answers, label) for label in LABELS}
    macro = sum(scores.values()) / len(scores)
    if given.json:
        print(json.dumps({"macro_f1": macro, "f1": scores, "cases": len(answers), "confusion": confusion(answers)}))
    else:
        print(shown(answers, scores, macro))
    return int(given.require is not None and macro < given.require)


def answered(one: ExpertCase) -> Answer:
    """Feed a case to a fresh engine and ask."""
    engine = Engine()
    for step, (values, counts) in enumerate(one.steps, 1):
        load = ExpertLoad(one.layers, one.loops, len(counts[0]), tuple(chain.from_iterable(counts)))
        record = Record("trainer", 0, "life", 0, step, step, 10.0 * step, dict(values), load)
        engine.feed(Batch(10.0 * step, (record,)))
    found = diagnose(engine.state, labels(one))
    return Answer(one.label, found.word, one.seed, one.note, found.why)


def labels(one: ExpertCase) -> Mapping[str, str]:
    """The labels of the alert that would ask."""
    whose = {"role": "trainer", "rank": "0"}
    return whose if one.subject is None else {**whose, "layer": str(one.subject[0]), "loop": str(one.subject[1])}


def f1(answers: Iterable[Answer], label: str) -> float:
    """Harmonic mean of precision and recall of one label; 0 where it was never said rightly."""
    counted = Counter((a.label == label, a.said == label) for a in answers)
    right, wrong = counted[True, True], counted[True, False] + counted[False, True]
    return 2.0 * right / (2.0 * right + wrong) if right else 0.0


def confusion(answers: Iterable[Answer]) -> dict[str, dict[str, int]]:
    """Label -> what was said -> how often."""
    out: dict[str, dict[str, int]] = {}
    for answer in answers:
        row = out.setdefault(answer.label, {})
        row[answer.said] = row.get(answer.said, 0) + 1
    return out


def shown(answers: Sequence[Answer], scores: Mapping[str, float], macro: float) -> str:
    """The scores as a table for people, and every wrong answer."""
    said = confusion(answers)
    rows = [f"{label:16s} F1 {score:.3f}   said: {_counts(said[label])}" for label, score in scores.items()]
    wrong = [f"  {a.label} {a.seed} ({a.note}) was called {a.said}: {a.why}" for a in answers if a.said != a.label]
    return "\n".join([*rows, f"macro-F1 {macro:.3f} over {len(answers)} cases", *wrong])


def _counts(said: Mapping[str, int]) -> str:
    return ", ".join(f"{word} {count}" for word, count in sorted(said.items(), key=lambda pair: -pair[1]))


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--split", choices=SPLITS, default=JUDGE)
    parser.add_argument("--cases", type=int, default=CASES, help=f"of each label (default {CASES})")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument("--require", type=float, metavar="F1", help=f"exit status 1 below it (the gate is {GATE})")
    given = parser.parse_args(argv)
    if given.cases < 1:
        parser.error(f"--cases {given.cases}: give at least 1")
    return given


if __name__ == "__main__":
    sys.exit(main())
