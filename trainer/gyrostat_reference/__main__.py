"""The command line: ``python -m gyrostat_reference --checkpoints DIR``, or the same behind ``torchrun -m``.

Exit status: 0 at the last step, 1 where the policy was destroyed or a rollout could not be had (one line on stderr),
2 for wrong arguments, 3 where a directive stopped the run, 4 where another rank is gone.
"""

import os
import sys
from collections.abc import Sequence
from contextlib import closing

import torch

from gyrostat import Telemetry
from gyrostat_reference.arguments import Arguments, read_arguments
from gyrostat_reference.engine import engine_of
from gyrostat_reference.measures import UNITS
from gyrostat_reference.ranks import Ranks, joined
from gyrostat_reference.resumption import take_up
from gyrostat_reference.rollout import PolicyDestroyed
from gyrostat_reference.trainer import Trainer

DONE, DIED, STOPPED, LOST = 0, 1, 3, 4


def main(argv: Sequence[str] | None = None) -> int:
    """Run the trainer; returns the exit status."""
    arguments = read_arguments(argv, os.environ)
    torch.set_num_threads(1)
    ranks: Ranks | None = None
    try:
        ranks = joined(os.environ)
        status = _run(arguments, ranks)
    except RuntimeError as error:  # RankLost, or what torch itself raises in DDP and FSDP2
        if ranks is not None and ranks.world == 1:
            raise
        print(str(error).strip().partition("\n")[0], file=sys.stderr, flush=True)
        os._exit(LOST)  # no good-byes to a group that is broken: they would wait for the rank that is gone
    ranks.close()
    return status


def _run(arguments: Arguments, ranks: Ranks) -> int:
    settings = arguments.settings
    root = str(settings.checkpoints or "")
    telemetry = Telemetry(arguments.run_dir, checkpoint_root=root, units=UNITS)
    with closing(engine_of(settings)) as engine:
        trainer = Trainer(
            settings, telemetry, arguments.fuse, say=_say if ranks.rank == 0 else _hush, ranks=ranks, engine=engine
        )
        died = _train(trainer)
    if arguments.summary and ranks.rank == 0:
        trainer.history.write(arguments.summary, died, trainer.data.place.passed_over)
    if died:
        print(died, file=sys.stderr)
        return DIED
    return STOPPED if trainer.stopping else DONE


def _train(trainer: Trainer) -> str:
    """Run to the end; the reason of its death, or ''. A run that died says no goodbye: its silence is an alarm."""
    died = ""
    try:
        trainer.run(take_up(trainer))
    except PolicyDestroyed as error:
        died = str(error)
    trainer.finish_writing()
    if not died:
        trainer.telemetry.close()
    return died


def _say(line: str) -> None:
    print(line, flush=True)


def _hush(line: str) -> None:
    """Only rank 0 prints; all of them tell telemetry."""


if __name__ == "__main__":
    sys.exit(main())
