"""Settings: what a run is asked to do; the command line's ``--help`` describes each.

The founding job sets MODEL_TYPE, LOOP_TIMES, ACTIVE_EXPERTS and RL_MODE in the environment: they are read too, and
an argument of the command line comes before them.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from gyrostat_reference.knobs import KnobValues
from gyrostat_reference.model import Shape
from gyrostat_reference.schedule import Schedule

RECIPE = Schedule(rate=7e-4, warm_up=10, decay_from=90, horizon=150)
STEPS = RECIPE.horizon

# What each mode of RL switches on, as knobs; PivotRL adds its groups to all the rest.
MODES: Mapping[str, Mapping[str, float]] = {
    "GRPO": {"use_gepo": 0.0, "eta": 1.0, "token_entropy_flow_control": 0.0, "alpha_max": 0.0},
    "GEPO": {"token_entropy_flow_control": 0.0, "alpha_max": 0.0},
    "OPEFO": {"use_gepo": 0.0},
    "GEPO+OPEFO": {},
    "PivotRL": {},
}
MODE = "GEPO+OPEFO"
MODELS = ("Loop-MoE", "MoE")


class Settings(NamedTuple):
    """One run. ``knobs`` is how they stand at its start; the mode has been worked into them.

    ``checkpoint_format``: whole or sharded; '' is what suits ``sharding``.
    """

    steps: int = STEPS
    seed: int = 0
    checkpoints: Path | None = None
    checkpoint_every: int = 5
    keep: int = 6
    guard: bool = False
    patience: float = 0.25
    mode: str = MODE
    shape: Shape = Shape()
    ref_model_path: Path | None = None
    knobs: KnobValues = KnobValues()
    schedule: Schedule = RECIPE
    faults: tuple[str, ...] = ()
    poison_item: int | None = None
    workers: int = 0
    sharding: str = "ddp"
    checkpoint_format: str = ""


def mode_named(text: str) -> str:
    """The mode that ``text`` names, in whatever case; raises ValueError."""
    for mode in MODES:
        if mode.lower() == text.strip().lower():
            return mode
    raise ValueError(f"RL_MODE={text!r}: there are {', '.join(MODES)}")


def in_mode(mode: str, shape: Shape) -> KnobValues:
    """How the knobs stand at the start of a run in ``mode``."""
    return KnobValues(loop_times=float(shape.loops))._replace(**MODES[mode])


def shape_of(environment: Mapping[str, str]) -> Shape:
    """The shape that MODEL_TYPE, LOOP_TIMES and ACTIVE_EXPERTS ask for; raises ValueError naming the one at fault."""
    usual = Shape()
    kind = environment.get("MODEL_TYPE", "").strip() or MODELS[0]
    if kind.lower() not in {model.lower() for model in MODELS}:
        raise ValueError(f"MODEL_TYPE={kind!r}: there are {', '.join(MODELS)}")
    loops = _whole(environment, "LOOP_TIMES", usual.loops, 64)
    loops = loops if kind.lower() == MODELS[0].lower() else 1
    return usual._replace(loops=loops, chosen=_whole(environment, "ACTIVE_EXPERTS", usual.chosen, usual.experts))


def _whole(environment: Mapping[str, str], name: str, usual: int, most: int) -> int:
    text = environment.get(name, "") or str(usual)
    if not text.isdecimal() or not 1 <= int(text) <= most:
        raise ValueError(f"{name}={text!r}: give a whole number from 1 to {most}")
    return int(text)
