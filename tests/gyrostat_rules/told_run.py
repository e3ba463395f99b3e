"""A whole run, told on stdout as bytes: entries and the last state. Run by a test in two processes."""

import sys

from run_story import CORE, NAN, Story, healthy_run

from gyrostat_rules import snapshot
from gyrostat_rules.inputs import Pack


def a_night() -> Story:
    """Ranks poisoned together, a rollback, a death, a restart, knobs, commands, stalls."""
    story = healthy_run(world=4).supervisor()
    story.at += 1.0
    story.batch(*(story.record(21, r, loss=NAN, kl=NAN, entropy=NAN, custom=NAN) for r in range(4)))
    story.ack(step=22)
    story.steps(16, 18)
    story.applied(19)
    story.died(-9)
    story.restarted("life-b")
    story.begin()
    story.steps(11, 40)
    story.tick(950.0)
    story.command("pause")
    story.feed(Pack(story.at, "again", CORE.replace("pack: core", "pack: other")))
    story.step(41, loss=NAN)
    return story


if __name__ == "__main__":
    told = a_night()
    sys.stdout.buffer.write(b"\n".join(snapshot.dump(e) for e in told.entries) + told.engine.snapshot())
