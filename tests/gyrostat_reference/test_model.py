import math

import pytest
import torch
from torch import Generator, Tensor

from gyrostat_reference.experts import Routing
from gyrostat_reference.model import LoopMoE, Output, RmsNorm, Shape, route_overlap
from gyrostat_reference.rollout import draw
from gyrostat_reference.task import LENGTH, VOCABULARY, draw_prompts, verify
from gyrostat_reference.warmup import base_policy

TINY = Shape(width=8, heads=2, expert_width=4, experts=4)
IDS = torch.randint(0, VOCABULARY, (3, LENGTH - 1), generator=Generator().manual_seed(0))


def _model(**changes: int) -> LoopMoE:
    torch.manual_seed(0)
    return LoopMoE(TINY._replace(**changes))


@pytest.mark.parametrize("loops", [1, 2, 4])
@pytest.mark.parametrize("chosen", [1, 2, 3])
def test_loop_times_and_active_experts_shape_the_graph(loops: int, chosen: int) -> None:
    """Counts are (layers, loops, experts), and every loop sends every token to as many experts as are active."""
    output = _model(loops=loops, chosen=chosen)(IDS)
    assert output.counts.shape == (1, loops, 4)
    assert output.counts.dtype == torch.int64
    assert output.counts.sum(-1).tolist() == [[IDS.numel() * chosen] * loops]
    assert len(output.passes) == len(output.updates) == loops
    assert output.logits.shape == (*IDS.shape, VOCABULARY)


def test_another_loop_is_another_answer() -> None:
    """The same weights applied once more give other logits: LOOP_TIMES is computed, not only counted."""
    three, two = _model(loops=3), _model(loops=2)
    weights = three.state_dict()
    weights["loops.weight"] = weights["loops.weight"][:2]
    two.load_state_dict(weights)
    assert not torch.allclose(three(IDS).logits, two(IDS).logits, atol=1e-3)


@torch.no_grad()
def test_loops_by_hand() -> None:
    """x_0 is the embedded input, injected again before every loop but the first, with that loop's own embedding."""
    model = _model(loops=3)
    output = model(IDS)
    embedded = model.tokens(IDS) + model.places.weight[: IDS.shape[1]]
    x, updates = embedded, []
    for loop, injected in enumerate((0.0, embedded, embedded)):
        after = model.block(x + injected + model.loops.weight[loop])[0]
        updates.append(float((after - x).norm() / x.norm()))
        x = after
    assert torch.allclose(output.logits, model.head(model.norm(x)), atol=1e-6)
    assert output.updates.tolist() == pytest.approx(updates, rel=1e-4)


@torch.no_grad()
def test_router_losses_are_means_over_loops() -> None:
    """More loops do not weigh the router's losses more."""
    output = _model(loops=3)(IDS)
    assert float(output.balance) == pytest.approx(sum(float(p.balance) for p in output.passes) / 3)
    assert float(output.z) == pytest.approx(sum(float(p.z) for p in output.passes) / 3)


def test_later_tokens_do_not_change_earlier_logits() -> None:
    """Attention is causal: what is scored in one pass is what was drawn token by token."""
    model, ids = _model(), IDS.clone()
    before = model(ids).logits
    ids[:, 4] = (ids[:, 4] + 1) % VOCABULARY
    after = model(ids).logits
    assert torch.allclose(after[:, :4], before[:, :4], atol=1e-5)
    assert not torch.allclose(after[:, 4:], before[:, 4:], atol=1e-3)


def test_gradient_is_what_finite_differences_say() -> None:
    """Logits and router losses together, along a random direction through all parameters, in float64."""
    model = _model(loops=2).double()
    parameters, random = list(model.parameters()), Generator().manual_seed(1)
    direction = [torch.randn(p.shape, generator=random, dtype=torch.float64) for p in parameters]

    def value() -> Tensor:
        output: Output = model(IDS)
        return output.logits.square().mean() + output.balance + 0.1 * output.z

    def moved(by: float) -> float:
        with torch.no_grad():
            for p, d in zip(parameters, direction, strict=True):
                p.add_(d, alpha=by)
            return float(value())

    claimed = sum(
        float((g * d).sum()) for g, d in zip(torch.autograd.grad(value(), parameters), direction, strict=True)
    )
    h = 1e-6
    measured = (moved(h) - moved(-2 * h)) / (2 * h)
    assert claimed == pytest.approx(measured, rel=1e-5)


def _routed(chosen: list[list[int]]) -> Routing:
    none = torch.zeros(())
    return Routing(torch.zeros(4), torch.tensor(chosen), none, none, none, none)


@pytest.mark.parametrize(
    ("then", "overlap"),
    [
        pytest.param([[1, 0], [3, 2]], 1.0, id="the same in another order"),
        pytest.param([[2, 3], [0, 1]], 0.0, id="none the same"),
        pytest.param([[0, 2], [2, 3]], (1 / 3 + 1) / 2, id="one of three for the first token"),
    ],
)
def test_route_overlap_by_hand(then: list[list[int]], overlap: float) -> None:
    """Jaccard index of a token's experts in two loops, mean over tokens."""
    assert float(route_overlap((_routed([[0, 1], [2, 3]]), _routed(then)))) == pytest.approx(overlap)


def test_route_overlap_of_one_loop_is_undefined() -> None:
    """There is no next loop to compare with; a mean over all pairs of neighbours otherwise."""
    same, other = _routed([[0, 1]]), _routed([[2, 3]])
    assert math.isnan(float(route_overlap((same,))))
    assert float(route_overlap((same, same, other))) == pytest.approx(0.5)


def test_rms_norm_by_hand() -> None:
    """(3, 4) has the root mean square sqrt(12.5)."""
    assert RmsNorm(2)(torch.tensor([3.0, 4.0])).tolist() == pytest.approx([3 / 12.5**0.5, 4 / 12.5**0.5])


def test_usual_shape_is_a_third_of_a_million() -> None:
    """What the documentation says of its size."""
    assert 0.33e6 < sum(p.numel() for p in LoopMoE().parameters()) < 0.36e6


def test_base_policy_is_half_right() -> None:
    """The checked-in weights load, and leave RL something to learn."""
    random = Generator().manual_seed(0)
    rewards = verify(draw(base_policy(), draw_prompts(256, random), random).sequences)
    assert 0.4 < rewards.mean() < 0.7
