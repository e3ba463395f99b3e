"""Whether all weights are finite: of every kind of number, frozen ones, such as are spread over ranks; asked twice."""

import math
from pathlib import Path

import pytest
import torch
from sdk_runs import python
from torch import nn

from gyrostat.integrations.hf.notices import Notices
from gyrostat.integrations.hf.weights import Weights


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64], ids=str)
def test_one_weight_is_enough(bad: float, dtype: torch.dtype) -> None:
    """Wherever it stands, of whatever kind."""
    model = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8)).to(dtype)
    weights = Weights(model, Notices())
    assert float(weights.finite()) == 1.0
    with torch.no_grad():
        model[1].weight[3, 4] = bad
    assert float(weights.finite()) == 0.0


def test_large_weights_of_half_precision_are_finite() -> None:
    """The sum of their squares is beyond the range of half precision; none of them is."""
    model = nn.Linear(64, 64).to(torch.float16)
    with torch.no_grad():
        model.weight.fill_(60000.0)
    assert float(Weights(model, Notices()).finite()) == 1.0


def test_frozen_weights_are_looked_at_once() -> None:
    """A broken base model is found before the first step; a step cannot change what is not trained."""
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    model[0].requires_grad_(False)
    with torch.no_grad():
        model[0].weight[0, 0] = math.nan
    weights = Weights(model, Notices())
    assert float(weights.finite(frozen_too=True)) == 0.0
    assert float(weights.finite()) == 1.0


def test_what_nobody_has_written_is_gone_through_once() -> None:
    """Between two steps the last word is enough; it is seen by a write that leaves no trace, which it does not see."""
    model = nn.Linear(2, 2)
    weights = Weights(model, Notices())
    weights.finite()
    model.weight.data[0, 0] = math.nan
    assert float(weights.still()) == 1.0
    assert float(weights.finite()) == float(weights.still()) == 0.0, "each step's own look sees it all the same"


@pytest.mark.parametrize("way", ["in place", "another tensor", "loaded", "by an optimizer"])
def test_what_was_written_between_two_steps_is_looked_at(way: str) -> None:
    """A callback of somebody else's, a checkpoint that was loaded: the next step must not build on it unseen."""
    model = nn.Linear(2, 2)
    weights = Weights(model, Notices())
    assert float(weights.finite()) == 1.0
    bad = torch.full((2, 2), math.nan)
    with torch.no_grad():
        if way == "in place":
            model.weight[1, 1] = math.nan
        elif way == "another tensor":
            model.weight.data = bad
        elif way == "loaded":
            model.load_state_dict({"weight": bad, "bias": torch.zeros(2)})
        else:
            model.weight.grad = bad
            torch.optim.AdamW(model.parameters()).step()
    assert float(weights.still()) == 0.0


def test_a_model_without_weights_has_no_word() -> None:
    """Nothing to look at is no fault, asked in either way."""
    weights = Weights(nn.ReLU(), Notices())
    assert weights.still() is None and weights.finite() is None


def test_weights_that_have_no_norm_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    """The others are looked at; what is not is said once."""
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    model[0].weight = nn.Parameter(torch.zeros(2, 2, dtype=torch.float8_e4m3fn), requires_grad=False)
    weights = Weights(model, Notices())
    assert [float(weights.finite(frozen_too=True)) for _ in range(2)] == [1.0, 1.0]
    assert capsys.readouterr().err.count("float8_e4m3fn are not looked at") == 1


def test_a_sharded_weight_is_looked_at_where_it_lies(tmp_path: Path) -> None:
    """Under FSDP2 each rank looks at its own shards; no collective is asked for, so none can hang."""
    script = f"""
        import math
        import torch
        from torch.distributed.fsdp import fully_shard
        from gyrostat.integrations.hf.notices import Notices
        from gyrostat.integrations.hf.weights import Weights

        torch.distributed.init_process_group("gloo", init_method="file://{tmp_path}/store", rank=0, world_size=1)
        model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
        fully_shard(model, mesh=torch.distributed.init_device_mesh("cpu", (1,)))
        weights = Weights(model, Notices())
        told = [weights.finite()]
        with torch.no_grad():
            model[1].weight.to_local()[0, 0] = math.nan
        told += [weights.still(), weights.finite()]
        print([float(t) for t in told], {{type(t) for t in told}} == {{torch.Tensor}})
        torch.distributed.destroy_process_group()
    """
    assert python(script, "env", "PYTHONWARNINGS=ignore").strip() == "[1.0, 0.0, 0.0] True"
