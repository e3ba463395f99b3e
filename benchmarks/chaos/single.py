"""Single: one draw played in a process of its own, judged, and its row written into its folder.

Called by ``chaos_runs.py --single``, which the campaign starts. An untreated twin is run only of what was not mended.
"""

import json
import shutil
from pathlib import Path

from scenario_code import code

from chaos import course, disks
from chaos.draw import Draw, decoded
from chaos.evidence import done_to_the_run, gathered, knobs
from chaos.play import play
from chaos.rows import Row
from chaos.stage import Stage
from chaos.verdict import MENDED, Facts, beside_its_twin, judged, reward_of

ROW, NOTES = "row.json", "notes.txt"


def main(text: str, folder: str) -> int:
    """Play, judge, write; 0 whatever the verdict, for that is the row's to say."""
    draw, place = decoded(text), Path(folder).resolve()
    row = _played(draw, place)
    unfinished = place / f"{ROW}.new"
    unfinished.write_text(json.dumps(row._asdict(), allow_nan=False), encoding="utf-8")
    unfinished.replace(place / ROW)
    return 0


def _played(draw: Draw, folder: Path) -> Row:
    stage = Stage(draw, folder)
    try:
        played = play(stage)
    finally:
        stage.end()
        disks.keep(stage)
        notes = [draw.line, *stage.notes, *stage.wrong]
        (folder / NOTES).write_text("\n".join(notes) + "\n", encoding="utf-8")
    evidence = gathered(stage.layout.journal, replay=draw.has("upgrade_rules") is None)
    facts = Facts(draw, played, evidence, dict(knobs(stage.layout.checkpoints)), tuple(stage.wrong))
    verdict, reward, twin = judged(facts), reward_of(facts), None
    if verdict.word != MENDED and draw.faults:
        twin = _twin(draw, folder / "twin")
        verdict = beside_its_twin(verdict, reward, twin)
    sent = sum(len(done_to_the_run(case)) for case in evidence.cases.values())
    kind = "chaos" if draw.faults or draw.disturbances else "clean"
    return Row(
        kind, draw.seed, draw.line, draw.mendable, verdict.word, verdict.why, reward, twin,
        played.steps[-1].step if played.steps else 0, sent, played.pods, round(played.gap, 1),
        round(played.seconds, 1), code(),
    )  # fmt: skip


def _twin(draw: Draw, folder: Path) -> float | None:
    """The reward of the same faults with no sidecar and nobody who disturbs; None where it died of them."""
    folder.mkdir(mode=0o700)
    alone = draw._replace(disturbances=())
    stage = Stage(alone, folder)
    try:
        played = play(stage, beside=False)
    finally:
        stage.end()
        shutil.rmtree(stage.layout.checkpoints, ignore_errors=True)
    return None if played.status or played.silent else course.reward(played.steps)
