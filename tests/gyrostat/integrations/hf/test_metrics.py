"""What a step has added to TRL's metrics, what a log line says, and that the trainer gets its methods back."""

import math
from types import SimpleNamespace

from gyrostat.integrations.hf.metrics import Metrics, logged
from gyrostat.integrations.hf.replacements import Replacements


def test_metrics_of_a_step_are_those_added_in_it() -> None:
    """What earlier steps left in the lists is not told again; several values of a step are averaged, a NaN is kept."""
    lists: dict[str, list[float]] = {"entropy": [9.0], "kl": [9.0], "num_tokens": [9.0], "reward": [9.0]}
    metrics = Metrics(SimpleNamespace(_metrics={"train": lists, "eval": {}}))
    metrics.mark()
    lists["entropy"] += [1.0, 2.0]
    lists["kl"] += [1.0, math.nan]
    lists["num_tokens"] = [10.0]
    lists["clip_ratio/region_mean"] = [0.5]
    told = metrics.added()
    assert math.isnan(told.pop("kl"))
    assert told == {"entropy": 1.5, "num_tokens": 10.0, "clip_fraction": 0.5}


def test_a_log_line_is_told_without_its_summary() -> None:
    """The mean loss of the whole training, at its end, is no step's loss."""
    assert logged({"loss": 0.5, "eval_reward": 1, "epoch": 1.0, "kl": None}) == {"loss": 0.5, "eval_reward": 1}
    assert logged({"train_runtime": 3.0, "train_loss": 0.4}) == {}


def test_what_somebody_else_replaced_is_not_taken_back() -> None:
    """Theirs calls ours, and stays."""
    owner = SimpleNamespace(step=lambda: 1)
    replacements, seen = Replacements(), list[int]()
    assert replacements.watch(owner, "step", seen.append)
    ours = owner.step
    owner.step = theirs = lambda: ours() + 1
    replacements.undo()
    assert owner.step is theirs
    assert theirs() == 2
    assert seen == [1]
