import pytest

from gyrostat_reference.knobs import KnobValues, turned
from gyrostat_reference.model import LoopMoE, Shape
from gyrostat_reference.settings import MODES, Settings, in_mode, mode_named, shape_of


@pytest.mark.parametrize(
    ("environment", "shape"),
    [
        pytest.param({}, (4, 2), id="nothing asked"),
        pytest.param({"MODEL_TYPE": "Loop-MoE", "LOOP_TIMES": "6", "ACTIVE_EXPERTS": "3"}, (6, 3), id="all asked"),
        pytest.param({"MODEL_TYPE": "loop-moe", "LOOP_TIMES": "1"}, (1, 2), id="in any case, fewest loops"),
        pytest.param({"LOOP_TIMES": "64", "ACTIVE_EXPERTS": "16"}, (64, 16), id="most of both"),
        pytest.param({"MODEL_TYPE": "MoE"}, (1, 2), id="a plain MoE has one loop"),
        pytest.param({"MODEL_TYPE": "", "LOOP_TIMES": "", "ACTIVE_EXPERTS": ""}, (4, 2), id="empty is not asked"),
        pytest.param({"ACTIVE_EXPERTS": "1"}, (4, 1), id="fewest experts"),
    ],
)
def test_shape_by_environment(environment: dict[str, str], shape: tuple[int, int]) -> None:
    """The founding job's variables make the model: its loops and its active experts."""
    found = shape_of(environment)
    assert (found.loops, found.chosen) == shape
    assert found == Shape()._replace(loops=shape[0], chosen=shape[1])


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        pytest.param("MODEL_TYPE", "Dense", "Loop-MoE, MoE", id="no such model"),
        pytest.param("LOOP_TIMES", "0", "1 to 64", id="no loop"),
        pytest.param("LOOP_TIMES", "65", "1 to 64", id="too many loops"),
        pytest.param("LOOP_TIMES", "-4", "1 to 64", id="negative"),
        pytest.param("LOOP_TIMES", "four", "1 to 64", id="a word"),
        pytest.param("LOOP_TIMES", "4.0", "1 to 64", id="a fraction"),
        pytest.param("ACTIVE_EXPERTS", "0", "1 to 16", id="no expert"),
        pytest.param("ACTIVE_EXPERTS", "17", "1 to 16", id="more than there are"),
        pytest.param("ACTIVE_EXPERTS", "²", "1 to 16", id="a digit that is no number"),
    ],
)
def test_message_names_variable_value_and_what_is_allowed(name: str, value: str, allowed: str) -> None:
    """A bad value is told in one line, as whoever set it wrote it."""
    with pytest.raises(ValueError) as told:
        shape_of({name: value})
    assert str(told.value).startswith(f"{name}={value!r}: ")
    assert allowed in str(told.value)


def test_shape_asked_for_is_the_model_built() -> None:
    """LOOP_TIMES=2 and ACTIVE_EXPERTS=3 are what the model computes with."""
    model = LoopMoE(shape_of({"LOOP_TIMES": "2", "ACTIVE_EXPERTS": "3"}))
    assert len(model.loops.weight) == 2
    assert model.block.experts.chosen == 3


@pytest.mark.parametrize("mode", MODES)
def test_modes_are_named_in_any_case(mode: str) -> None:
    """RL_MODE=pivotrl is PivotRL."""
    assert mode_named(mode.upper()) == mode_named(f" {mode.lower()} ") == mode


def test_unknown_mode_is_told_with_those_there_are() -> None:
    """The message names the variable, the value and all modes."""
    with pytest.raises(ValueError, match=r"RL_MODE='PPO': there are GRPO, GEPO, OPEFO, GEPO\+OPEFO, PivotRL"):
        mode_named("PPO")


@pytest.mark.parametrize(
    ("mode", "gepo", "eta", "opefo", "controlled"),
    [("GRPO", 0, 1, 0, False), ("GEPO", 1, 0, 0, False), ("OPEFO", 0, 0, 1, True),
     ("GEPO+OPEFO", 1, 0, 1, True), ("PivotRL", 1, 0, 1, True)],
)  # fmt: skip
def test_mode_switches_its_algorithms_on(mode: str, gepo: int, eta: int, opefo: int, controlled: bool) -> None:
    """What is not asked for is off; GRPO divides by the group's own sigma; every start is within the bounds."""
    knobs = in_mode(mode, Shape(loops=2))
    assert (knobs.use_gepo, knobs.eta, knobs.token_entropy_flow_control) == (gepo, eta, opefo)
    assert (knobs.alpha_max > 0) is controlled
    assert knobs.loop_times == 2.0
    assert turned(KnobValues(loop_times=2.0), knobs._asdict()) == knobs


def test_founding_settings_are_the_defaults() -> None:
    """What the founding job sets stands without being set."""
    knobs = Settings().knobs
    assert (knobs.use_gepo, knobs.difficulty_threshold) == (1.0, 0.6)
    assert (knobs.token_entropy_flow_control, knobs.min_entropy_floor) == (1.0, 0.3)
    assert (knobs.sample_steps, knobs.variance_threshold, knobs.max_grad_norm) == (50.0, 0.15, 1.0)
