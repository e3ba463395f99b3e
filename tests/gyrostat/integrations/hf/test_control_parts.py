"""The parts of steering by themselves, without TRL: what is drawn and passed over, the entropy bonus, what is kept."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gyrostat.integrations.hf.bonus import Bonus
from gyrostat.integrations.hf.feed import Feed
from gyrostat.integrations.hf.keeping import Kept, all_kept, keep, kept_in
from gyrostat.integrations.hf.knobs import LIMITS, Scale
from gyrostat.integrations.hf.replacements import Replacements
from gyrostat.integrations.hf.rewinding import check


class Loader:
    """A trainer's way to its data: rows 0, 1, 2 and so on, over and over."""

    def __init__(self, rows: int, **attributes: Any) -> None:
        self.args = SimpleNamespace(steps_per_generation=1, num_iterations=1)
        self.rows = rows
        vars(self).update(attributes)

    def get_batch_samples(self, iterator: Any, count: int, device: str = "cpu") -> tuple[list[Any], None]:
        return [[{"prompt": next(iterator) % self.rows}] for _ in range(count)], None


def _fed(trainer: Loader) -> Feed:
    feed = Feed(trainer)
    assert feed.watch(Replacements())
    return feed


def _next(trainer: Loader, iterator: Any) -> int:
    return int(trainer.get_batch_samples(iterator, 1)[0][0][0]["prompt"])


def test_what_is_owed_is_thrown_away_before_anything_is_served() -> None:
    """A process that begins anew draws past what the one before it has seen."""
    trainer, rows = Loader(100), iter(range(100))
    feed = _fed(trainer)
    feed.owed = 7
    assert _next(trainer, rows) == 7
    assert (feed.drawn, feed.dropped, feed.owed) == (8, True, 0)


def test_rows_that_were_passed_over_are_not_served_again() -> None:
    """Places 2 to 3 of four rows: the third row is left out of every later round."""
    trainer, rows = Loader(4, _buffered_inputs=None, _step=0), iter(range(100))
    feed = _fed(trainer)
    assert [_next(trainer, rows) for _ in range(4)] == [0, 1, 2, 3]
    assert feed.pass_over(2, 3) == 1
    assert [_next(trainer, rows) for _ in range(6)] == [0, 1, 3, 0, 1, 3]


def test_places_too_long_ago_are_refused() -> None:
    """What is not known any more cannot be passed over, and saying so is better than nothing done."""
    trainer, rows = Loader(100), iter(range(100))
    feed = _fed(trainer)
    for _ in range(40):
        _next(trainer, rows)
    with pytest.raises(ValueError, match="not known any more"):
        feed.pass_over(0, 1)


def _grpo(**more: Any) -> SimpleNamespace:
    metrics: dict[str, dict[str, list[float]]] = {"train": {"entropy": [2.0]}}
    values = {"entropy_coef": 0.0, "_entropy_bonus_enabled": False, "use_adaptive_entropy": False, **more}
    return SimpleNamespace(_metrics=metrics, args=SimpleNamespace(entropy_coef_max=1.0, entropy_target=0.2), **values)


def test_the_bonus_grows_below_the_floor_and_goes_slowly_above_it() -> None:
    """alpha_max 0.1: a twentieth up in a step below 0.3 nats, a quarter of that down above; never beyond its bounds."""
    trainer = _grpo()
    bonus = Bonus(trainer)
    bonus.adapt()
    bonus.set_largest(0.1)
    assert trainer.entropy_coef == 0.0
    trainer._metrics["train"]["entropy"].append(0.2)
    bonus.adapt()
    assert trainer.entropy_coef == pytest.approx(0.005)
    for _ in range(40):
        bonus.adapt()
    assert trainer.entropy_coef == pytest.approx(0.1)
    assert bonus.values() == {"entropy_bonus": 0.1, "entropy_floor": 0.3, "entropy_average": 0.2}
    trainer._metrics["train"]["entropy"].append(0.4)
    bonus.adapt()
    assert trainer.entropy_coef == pytest.approx(0.1 - 0.005 / 4)
    bonus.set_largest(0.0)
    assert (trainer.entropy_coef, trainer._entropy_bonus_enabled) == (0.0, False)


def test_the_bonus_is_there_at_once_where_the_entropy_has_gone() -> None:
    """Turned on below the floor: a collapse does not wait for twenty steps."""
    trainer = _grpo()
    bonus = Bonus(trainer)
    bonus.adapt()
    trainer._metrics["train"]["entropy"].append(0.1)
    bonus.adapt()
    bonus.set_largest(0.1)
    assert (trainer.entropy_coef, trainer._entropy_bonus_enabled) == (0.1, True)


def test_a_bonus_that_trl_moves_is_left_to_it() -> None:
    """use_adaptive_entropy: the knobs are TRL's own arguments, and its coefficient is not touched."""
    trainer = _grpo(use_adaptive_entropy=True, entropy_coef=0.01, _entropy_bonus_enabled=True)
    bonus = Bonus(trainer)
    bonus.set_largest(0.5)
    bonus.set_floor(0.25)
    bonus.adapt()
    assert (trainer.args.entropy_coef_max, trainer.args.entropy_target, trainer.entropy_coef) == (0.5, 0.25, 0.01)


def test_a_fixed_bonus_has_no_floor() -> None:
    """entropy_coef=0.02 by the user: that is what alpha_max reads and sets."""
    trainer = _grpo(entropy_coef=0.02, _entropy_bonus_enabled=True)
    bonus = Bonus(trainer)
    assert (bonus.largest(), bonus.has_floor) == (0.02, False)
    bonus.set_largest(0.04)
    assert trainer.entropy_coef == 0.04


def test_the_scale_is_in_the_optimizer_only_while_it_steps() -> None:
    """Put in and taken out: the very objects are back that were there."""
    rate = object()
    optimizer = SimpleNamespace(param_groups=[{"lr": 0.5}, {"lr": 0.25}])
    scale = Scale()
    scale.value = 0.5
    scale.put_in(optimizer)
    assert [group["lr"] for group in optimizer.param_groups] == [0.25, 0.125]
    scale.take_out()
    assert [group["lr"] for group in optimizer.param_groups] == [0.5, 0.25]
    optimizer.param_groups[0]["lr"] = rate
    scale.take_out()
    assert optimizer.param_groups[0]["lr"] is rate


def test_what_is_kept_comes_back_out_of_a_checkpoint(tmp_path: Path) -> None:
    """Segment, directive, data, knobs and skips, through trainer_state.json."""
    state, kept = SimpleNamespace(stateful_callbacks={}), Kept(2, 9, 31, {"lr_scale": 0.5}, (4, 5))
    keep(state, kept)
    folder = tmp_path / "checkpoint-30"
    folder.mkdir()
    (folder / "trainer_state.json").write_text(
        json.dumps({"global_step": 30, "stateful_callbacks": state.stateful_callbacks})
    )
    assert list(all_kept(tmp_path)) == [kept]


@pytest.mark.parametrize(
    "callbacks",
    [None, {}, [], {"gyrostat": 3}, {"gyrostat": {"attributes": {"segment": "x"}}}, {"gyrostat": {"attributes": {}}}],
    ids=["none", "empty", "a list", "a number", "a wrong segment", "nothing in it"],
)
def test_a_checkpoint_of_a_run_that_was_never_steered_is_none_of_ours(callbacks: object) -> None:
    """An entry that is absent, or somebody else's, is no reason to fail."""
    assert kept_in(callbacks) is None


def _trainer(root: Path) -> Any:
    return SimpleNamespace(args=SimpleNamespace(output_dir=str(root)), state=SimpleNamespace(max_steps=20))


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda f: (f / "model.safetensors").unlink(), "holds no weights"),
        (lambda f: (f / "optimizer.pt").unlink(), "has no optimizer.pt"),
        (lambda f: (f / "trainer_state.json").write_text("{"), "cannot be read"),
        (lambda f: (f / "trainer_state.json").write_text('{"global_step": 6}'), "is of step 6, not 5"),
        (lambda f: (f / "trainer_state.json").write_text('{"global_step": 50}'), "is of step 50, not 5"),
    ],
    ids=["no weights", "weights alone", "half a state", "another step", "a later run"],
)
def test_a_checkpoint_that_cannot_be_loaded_is_refused_before_anything_is_touched(
    tmp_path: Path, spoil: Any, why: str
) -> None:
    """What is missing is named in the answer."""
    folder = tmp_path / "checkpoint-5"
    folder.mkdir()
    for name in ("model.safetensors", "optimizer.pt", "scheduler.pt"):
        (folder / name).touch()
    (folder / "trainer_state.json").write_text('{"global_step": 5}')
    assert check(_trainer(tmp_path), str(folder), 5) == folder
    spoil(folder)
    with pytest.raises(ValueError, match=why):
        check(_trainer(tmp_path), str(folder), 5)


def test_a_checkpoint_elsewhere_is_refused(tmp_path: Path) -> None:
    """A folder that is not under output_dir is not this run's, whoever names it."""
    (tmp_path / "out").mkdir()
    with pytest.raises(ValueError, match="not under this run's output_dir"):
        check(_trainer(tmp_path / "out"), str(tmp_path / "checkpoint-5"), 5)


def test_the_page_has_each_knob_with_its_bounds() -> None:
    """docs/trl_control.md is what a user goes by."""
    page = (Path(__file__).parents[4] / "docs" / "trl_control.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    for name, limits in LIMITS.items():
        row = next((row for row in rows if f"`{name}`" in row), "")
        assert f"{limits.low:g} to {limits.high:g}" in row.replace("1e-6", "1e-06"), name
