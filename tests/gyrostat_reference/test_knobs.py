import math

import pytest

from gyrostat import Knob
from gyrostat.knob import check, unfit
from gyrostat.wire import KnobChange
from gyrostat_reference.knobs import LIMITS, SWITCHES, KnobValues, offered, restored, turned

# Name, bounds, largest factor and largest step of a directive, for a trainer of this size.
TABLE = [
    ("use_gepo", 0, 1, None, None), ("difficulty_threshold", 0.5, 0.8, None, 0.05),
    ("a_easy", 0, 0.8, None, 0.1), ("a_hard", 0, 0.5, None, 0.1),
    ("eps_lo", 0.1, 0.3, None, 0.02), ("eps_hi", 0.2, 0.4, None, 0.02), ("eta", 0, 0, None, None),
    ("token_entropy_flow_control", 0, 1, None, None), ("min_entropy_floor", 0.02, 1.45, 1.25, None),
    ("lambda_max", 0, 0.95, None, 0.1), ("alpha_max", 0, 0.2, 2, None), ("d_alpha", 0, 0.01, 2, None),
    ("variance_threshold", 0.05, 0.24, None, 0.02), ("sample_steps", 16, 512, 2, None),
    ("lr_scale", 0.01, 1, 2, None), ("router_lr_scale", 0.01, 1, 2, None), ("max_grad_norm", 0.1, 2, 2, None),
    ("kl_coef", 0, 0.05, 2, None), ("router_aux_coef", 0, 0.1, 3, None), ("router_bias_rate", 0, 0.01, 2, None),
    ("router_z_coef", 0, 0.01, 3, None), ("router_noise", 0, 1, None, 0.1), ("loop_times", 4, 4, None, None),
    ("adv_eps", 1e-6, 1e-2, None, None), ("kl_clamp", 1, 20, None, None), ("ratio_cap", 2, 50, None, None),
    ("mask_degenerate", 0, 1, None, None),
    ("temperature", 0.7, 1.2, None, 0.05),
]  # fmt: skip


class Holder:
    """Whoever's knobs are turned."""

    def __init__(self) -> None:
        self.knobs = KnobValues()


def _knob(name: str, holder: Holder | None = None) -> Knob:
    return next(knob for knob in offered(holder or Holder()) if knob.name == name)


def _refused(knob: Knob, value: float) -> str:
    return unfit(knob, KnobChange(knob.name, knob.get(), value), None)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: str(row[0]))
def test_every_knob_is_offered_with_its_bounds_and_largest_change(row: tuple[str, float, float, float, float]) -> None:
    """What Hello shows is the table's."""
    knob = _knob(row[0])
    assert (knob.name, knob.low, knob.high, knob.max_factor, knob.max_step) == row
    assert knob.low <= knob.get() <= knob.high
    assert knob.doc
    check(knob)


def test_table_is_all_there_is() -> None:
    """No knob without a row, no row without a knob, no value that cannot be read."""
    names = {name for name, *_ in TABLE}
    assert names == set(LIMITS) == set(KnobValues._fields)


@pytest.mark.parametrize("name", ["eta", "loop_times"])
@pytest.mark.parametrize("by", [-0.5, 1e-3, 1.0])
def test_what_only_a_restart_changes_is_readable_and_refused(name: str, by: float) -> None:
    """A directive on it is refused by its bounds, and the offer says why they are so narrow."""
    knob = _knob(name)
    assert "outside its bounds" in _refused(knob, knob.get() + by)
    assert "only at a restart" in knob.doc


def test_bounds_of_what_only_a_restart_changes_are_where_the_run_stands() -> None:
    """A run that was started with eta = 1 shows eta = 1."""
    holder = Holder()
    holder.knobs = holder.knobs._replace(eta=1.0)
    knob = _knob("eta", holder)
    assert (knob.get(), knob.low, knob.high) == (1.0, 1.0, 1.0)


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        pytest.param("min_entropy_floor", 0.374, "", id="a quarter more"),
        pytest.param("min_entropy_floor", 0.376, "largest factor", id="more than a quarter more"),
        pytest.param("difficulty_threshold", 0.65, "", id="one step"),
        pytest.param("difficulty_threshold", 0.66, "largest step", id="more than one step"),
        pytest.param("lr_scale", 0.5, "", id="half"),
        pytest.param("lr_scale", 1.1, "outside its bounds", id="never above the run's own rate"),
        pytest.param("variance_threshold", 0.25, "outside its bounds", id="reached by exact halves alone"),
        pytest.param("adv_eps", 0.0, "outside its bounds", id="0/0 in a group without spread"),
        pytest.param("kl_coef", math.nan, "outside its bounds", id="no number"),
    ],
)
def test_directive_is_judged_by_bounds_and_stride(name: str, value: float, why: str) -> None:
    """What the table allows in one directive is allowed, and no more."""
    found = _refused(_knob(name), value)
    assert why in found if why else not found


@pytest.mark.parametrize("row", TABLE, ids=lambda row: str(row[0]))
def test_value_beyond_a_bound_is_never_set(row: tuple[str, float, float, float, float]) -> None:
    """Whatever comes from a file or a directive, each bound itself holds and what lies behind it does not."""
    limits = LIMITS[row[0]]
    for bound, beyond in ((limits.low, limits.low - 1e-6), (limits.high, limits.high + 1e-6)):
        stands = KnobValues(loop_times=bound)  # the shape's, which is not turned but at the start
        assert getattr(turned(stands, {row[0]: bound}), row[0]) == bound
        for bad in (beyond, math.nan, math.inf, -math.inf):
            with pytest.raises(ValueError, match=f"{row[0]}=.* is outside its bounds"):
                turned(KnobValues(), {row[0]: bad})


@pytest.mark.parametrize("name", SWITCHES)
def test_switch_is_off_or_on(name: str) -> None:
    """Half on is refused when it is set, and nothing has changed."""
    holder = Holder()
    knob = _knob(name, holder)
    with pytest.raises(ValueError, match=f"{name}=0.5: a switch is 0 or 1"):
        knob.set(0.5)
    assert holder.knobs == KnobValues()
    knob.set(0.0)
    assert (knob.get(), getattr(holder.knobs, name)) == (0.0, 0.0)


def test_unknown_name_is_told_with_those_there_are() -> None:
    """A resume of another version's knobs fails by name."""
    with pytest.raises(ValueError, match=r"no knob 'clip'.*max_grad_norm"):
        turned(KnobValues(), {"clip": 1.0})


def test_setting_one_knob_leaves_the_rest() -> None:
    """A knob turned is read back, and is the only one."""
    holder = Holder()
    _knob("lambda_max", holder).set(0.3)
    assert holder.knobs == KnobValues()._replace(lambda_max=0.3)


def test_the_shape_is_no_knob_to_turn() -> None:
    """A run that said it looped 8 times while its model loops 4 would mislead everybody."""
    with pytest.raises(ValueError, match="--loop-times"):
        turned(KnobValues(), {"loop_times": 8.0})


def test_a_checkpoint_restores_what_a_person_set_past_the_bounds() -> None:
    """A run must be able to go on from its own checkpoints, whatever somebody did to its knobs by hand."""
    wild = KnobValues(lr_scale=100.0, adv_eps=0.0, max_grad_norm=3e38)
    assert restored(wild._asdict()) == wild
    with pytest.raises(ValueError, match="no knob 'beta'"):
        restored({"beta": 1.0})
