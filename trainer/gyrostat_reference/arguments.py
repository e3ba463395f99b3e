"""Arguments: the command line and the environment, read into settings; every mistake is one line and status 2."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from gyrostat_reference.data import PromptData
from gyrostat_reference.faults import DIE_AT, FAULTS, Fuse, strike
from gyrostat_reference.knobs import LIMITS, KnobValues, turned
from gyrostat_reference.model import Shape
from gyrostat_reference.settings import MODE, MODES, STEPS, Settings, in_mode, mode_named, shape_of
from gyrostat_reference.warmup import BaseError, base_policy

_EPILOGUE = """environment: MODEL_TYPE (Loop-MoE, MoE), LOOP_TIMES, ACTIVE_EXPERTS, RL_MODE; options go before it.

examples:
  python -m gyrostat_reference --checkpoints runs/a                       the recipe
  python -m gyrostat_reference --mode PivotRL --set min_entropy_floor=0.25
  python -m gyrostat_reference --fault divergence@20 --steps 60           see it die
  torchrun --nproc-per-node 2 -m gyrostat_reference --sharding fsdp2 --checkpoints runs/b
"""


class Arguments(NamedTuple):
    """What was asked for."""

    settings: Settings
    fuse: Fuse
    summary: Path | None
    run_dir: str | None

    @property
    def timeout(self) -> float:
        """Seconds that one rank waits for another: a minute, or as long as workers or a new base may take."""
        slow = self.settings.workers or self.settings.shape != Shape()
        return 600.0 if slow else 60.0


def read_arguments(argv: Sequence[str] | None, environment: Mapping[str, str]) -> Arguments:
    """Read ``argv`` (None: sys.argv); ends the process with status 2 and one line on a mistake."""
    parser = _parser()
    given = parser.parse_args(argv)
    try:
        return Arguments(
            _settings(given, environment), Fuse.read(environment.get(DIE_AT, "")), given.summary, given.run_dir
        )
    except ValueError as error:
        parser.error(str(error))


def _settings(given: argparse.Namespace, environment: Mapping[str, str]) -> Settings:
    asked = {"LOOP_TIMES": given.loop_times, "ACTIVE_EXPERTS": given.active_experts}
    shape = shape_of({**environment, **{name: str(value) for name, value in asked.items() if value is not None}})
    mode = mode_named(given.mode or environment.get("RL_MODE", "") or MODE)
    if given.ref_model_path is not None:
        _ = base_policy(shape, given.ref_model_path)  # raises BaseError, which is for whoever typed the path
    poison, at = given.poison_item, given.poison_at_step
    for struck in map(strike, given.fault):
        if struck.fault.act == "poison" and (at is not None or poison is not None):
            raise ValueError(f"{struck.name} poisons an item of its own: give it alone")
        at = struck.step if struck.fault.act == "poison" else at
    if poison is not None and not 0 <= poison < PromptData().size:
        raise ValueError(f"--poison-item {poison}: items are 0 to {PromptData().size - 1}")
    if given.summary is not None and not given.summary.absolute().parent.is_dir():
        raise ValueError(f"--summary {given.summary}: there is no such folder")
    if at is not None:
        poison = PromptData(seed=given.seed).first_item_of_step(at)
    return Settings(
        given.steps, given.seed, given.checkpoints, given.checkpoint_every, given.keep, given.guard, given.patience,
        mode, shape, given.ref_model_path, _turned(in_mode(mode, shape), given.set), faults=tuple(given.fault),
        poison_item=poison, workers=given.workers, sharding=given.sharding, checkpoint_format=given.checkpoint_format,
    )  # fmt: skip


def _turned(knobs: KnobValues, texts: Sequence[str]) -> KnobValues:
    for text in texts:
        name, _, value = text.partition("=")
        try:
            number = float(value)
        except ValueError:
            raise ValueError(f"--set {text}: give NAME=NUMBER, the name one of {', '.join(LIMITS)}") from None
        knobs = turned(knobs, {name: number})
    return knobs


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "gyrostat_reference", description="Train the reference model, a looped mixture of experts, by group RL.",
        epilog=_EPILOGUE, formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    _add_run(parser)
    _add_learning(parser)
    _add_faults(parser)
    return parser


def _add_run(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--steps", type=_count, default=STEPS, help=f"number of the last step (default {STEPS}, the recipe's)")
    add("--seed", type=_number, default=0, help="of data order and rollouts (default 0)")
    add("--checkpoints", type=Path, metavar="DIR", help="keep checkpoints here and resume from the newest")
    add("--checkpoint-every", type=_count, default=5, metavar="N", help="steps between checkpoints (default 5)")
    add("--keep", type=_count, default=6, metavar="N", help="checkpoints kept; older ones are deleted (default 6)")
    forms = "of one file set, or a shard of each rank (default: sharded with fsdp2, else whole)"
    add("--checkpoint-format", choices=("whole", "sharded"), default="", help=forms)
    add("--summary", type=Path, metavar="FILE", help="write what the run came to as JSON")
    add("--run-dir", metavar="DIR", help="where to say it all to the sidecar (default: GYROSTAT_RUN_DIR)")
    add("--workers", type=_number, default=0, metavar="N", help="rollouts by so many worker processes (default: none)")
    add("--sharding", choices=("ddp", "fsdp2"), default="ddp", help="how several ranks share the model (default ddp)")


def _add_learning(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--mode", metavar="MODE", help=f"{', '.join(MODES)} (default: RL_MODE, else {MODE})")
    add("--set", action="append", default=[], metavar="KNOB=VALUE", help="how a knob stands at the start; repeat")
    add("--loop-times", type=_count, metavar="N", help="times that the block is applied (default: LOOP_TIMES, else 4)")
    add("--active-experts", type=_count, metavar="N", help="experts of a token (default: ACTIVE_EXPERTS, else 2)")
    add(
        "--ref-model-path",
        type=Path,
        metavar="FILE",
        help="safetensors of the reference policy (default: the package's)",
    )
    add("--guard", action=argparse.BooleanOptionalAction, default=False, help="skip steps that are not finite")
    waits = "seconds the sidecar has to answer a step that is not finite, before the next (default 0.25)"
    add("--patience", type=_seconds, default=0.25, metavar="S", help=waits)


def _add_faults(parser: argparse.ArgumentParser) -> None:
    names = ", ".join(FAULTS)
    parser.add_argument(
        "--fault", action="append", default=[], metavar="NAME[@STEP]", help=f"break it: {names}; repeat"
    )
    poison = parser.add_mutually_exclusive_group()
    poison.add_argument("--poison-item", type=int, metavar="ID", help="this item's verifier divides by zero")
    poison.add_argument("--poison-at-step", type=_count, metavar="S", help="poison the first item of this step's batch")


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def _number(text: str) -> int:
    if not text.isdecimal() or int(text) >= 1 << 31:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 to 2**31 - 1")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 3600:  # false for NaN
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 0 to 3600")
    return seconds


__all__ = ["Arguments", "BaseError", "read_arguments"]
