"""The command line: ``python -m gyrostat_reference --steps 60 --checkpoints DIR``.

Exit status: 0 at the last step, 1 where the policy was destroyed (one line on stderr), 2 for wrong arguments,
3 where a directive stopped the run.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

from gyrostat import Telemetry
from gyrostat_reference.data import PromptData
from gyrostat_reference.faults import DIE_AT, Fuse
from gyrostat_reference.measures import UNITS
from gyrostat_reference.resumption import take_up
from gyrostat_reference.rollout import PolicyDestroyed
from gyrostat_reference.trainer import Settings, Trainer

DONE, DIED, STOPPED = 0, 1, 3


def main(argv: Sequence[str] | None = None) -> int:
    """Run the trainer; returns the exit status."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    try:
        fuse = Fuse.read(os.environ.get(DIE_AT, ""))
    except ValueError as error:
        parser.error(str(error))
    torch.set_num_threads(1)
    telemetry = Telemetry(arguments.run_dir, checkpoint_root=arguments.checkpoints or "", units=UNITS)
    trainer = Trainer(_settings(arguments), telemetry, fuse, say=_say)
    died = _train(trainer)
    if arguments.summary:
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
    if trainer.writer is not None:
        trainer.writer.wait()
    if not died:
        trainer.telemetry.close()
    return died


def _settings(arguments: argparse.Namespace) -> Settings:
    poison = arguments.poison_item
    if arguments.poison_at_step is not None:
        poison = PromptData(seed=arguments.seed).first_item_of_step(arguments.poison_at_step)
    return Settings(
        arguments.steps, arguments.seed, arguments.checkpoints, arguments.checkpoint_every, arguments.keep,
        poison, arguments.guard, arguments.patience,
    )  # fmt: skip


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("gyrostat_reference", description="Train the reference model by group RL.")
    add = parser.add_argument
    add("--steps", type=_count, default=60, help="number of the last step (default 60)")
    add("--seed", type=int, default=0, help="of data order and rollouts (default 0)")
    add("--checkpoints", type=Path, metavar="DIR", help="keep checkpoints here and resume from the newest")
    add("--checkpoint-every", type=_count, default=5, metavar="N", help="steps between checkpoints (default 5)")
    add("--keep", type=_count, default=6, metavar="N", help="checkpoints kept; older ones are deleted (default 6)")
    poison = parser.add_mutually_exclusive_group()
    poison.add_argument("--poison-item", type=int, metavar="ID", help="this item's verifier divides by zero")
    poison.add_argument("--poison-at-step", type=_count, metavar="S", help="poison the first item of this step's batch")
    add("--guard", action=argparse.BooleanOptionalAction, default=False, help="skip steps that are not finite")
    waits = "seconds the sidecar has to answer a step that is not finite, before the next (default 0.25)"
    add("--patience", type=float, default=0.25, metavar="S", help=waits)
    add("--summary", type=Path, metavar="FILE", help="write what the run came to as JSON")
    add("--run-dir", metavar="DIR", help="where to say it all to the sidecar (default: GYROSTAT_RUN_DIR)")
    return parser


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
