"""The command line: ``python -m gyrostat_reference --checkpoints DIR``, or the same behind ``torchrun -m``.

Exit status: 0 at the last step, 1 where the policy was destroyed or a rollout could not be had (one line on stderr),
2 for wrong arguments, 3 where a directive stopped the run, 4 where another rank is gone.
"""

import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import closing

import torch
from torch.distributed import DistError

from gyrostat import Control, Telemetry
from gyrostat_reference.arguments import Arguments, read_arguments
from gyrostat_reference.engine import PoolError, engine_of
from gyrostat_reference.measures import UNITS
from gyrostat_reference.ranks import RankLost, Ranks, joined
from gyrostat_reference.resumption import take_up
from gyrostat_reference.rollout import PolicyDestroyed
from gyrostat_reference.trainer import Trainer

DONE, DIED, WRONG, STOPPED, LOST = 0, 1, 2, 3, 4


def main(argv: Sequence[str] | None = None) -> int:
    """Run the trainer; returns the exit status."""
    arguments = read_arguments(argv, os.environ)
    torch.set_num_threads(1)
    try:
        ranks = joined(os.environ, arguments.timeout)
    except (ValueError, RankLost) as error:
        return _told(str(error), LOST if isinstance(error, RankLost) else WRONG)
    try:
        status = _run(arguments, ranks)
    except RuntimeError as error:  # RankLost, or what torch itself raises in DDP and FSDP2
        if not isinstance(error, (RankLost, DistError)):
            traceback.print_exc()
        else:
            _told(str(error).strip().partition("\n")[0], LOST)
        if ranks.world == 1:
            raise
        sys.stderr.flush()
        os._exit(LOST if isinstance(error, (RankLost, DistError)) else 1)  # good-byes would wait for who is gone
    ranks.close()
    return status


def _run(arguments: Arguments, ranks: Ranks) -> int:
    settings = arguments.settings
    root = str(settings.checkpoints or "")
    telemetry = Telemetry(arguments.run_dir, checkpoint_root=root, units=UNITS)
    try:
        engine = engine_of(settings)
        say = _say if ranks.rank == 0 else _hush
        trainer = Trainer(settings, telemetry, arguments.fuse, say=say, ranks=ranks, engine=engine)
        control = take_up(trainer)
    except (ValueError, OSError, PoolError) as error:  # what was asked for is not to be had
        return _told(str(error), WRONG)
    with closing(engine):
        died = _train(trainer, control)
    if arguments.summary and ranks.rank == 0:
        trainer.history.write(arguments.summary, died, trainer.data.place.passed_over)
    if died:
        print(died, file=sys.stderr)
        return DIED
    return STOPPED if trainer.stopping else DONE


def _train(trainer: Trainer, control: Control) -> str:
    """Run to the end; the reason of its death, or ''. A run that died says no goodbye: its silence is an alarm."""
    died = ""
    try:
        trainer.run(control)
    except PolicyDestroyed as error:
        died = str(error)
    if died:
        trainer.finish_writing()
    else:
        trainer.finish()
        trainer.telemetry.close()
    return died


def _told(what: str, status: int) -> int:
    print(what, file=sys.stderr, flush=True)
    return status


def _say(line: str) -> None:
    print(line, flush=True)


def _hush(line: str) -> None:
    """Only rank 0 prints; all of them tell telemetry."""


if __name__ == "__main__":
    sys.exit(main())
