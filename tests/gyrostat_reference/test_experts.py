import pytest
import torch
from torch import Generator, Tensor
from torch.nn import functional

from gyrostat_reference.experts import Experts, Noise

TOKENS = torch.randn(40, 8, generator=Generator().manual_seed(0))


def _experts(chosen: int = 2) -> Experts:
    torch.manual_seed(0)
    return Experts(width=8, inner=4, experts=4, chosen=chosen)


@torch.no_grad()
def _dense(layer: Experts, tokens: Tensor) -> Tensor:
    """Each token by hand: its likeliest experts after the bias, under their probabilities without it."""
    rows = []
    for token in tokens:
        likely = layer.router(token).softmax(-1)
        chosen = sorted(range(layer.experts), key=lambda e: -float(likely[e] + layer.bias[e]))[: layer.chosen]
        total = sum(float(likely[e]) for e in chosen) if len(chosen) > 1 else 1.0
        parts = [likely[e] / total * (functional.gelu(token @ layer.rise[e]) @ layer.fall[e]) for e in chosen]
        rows.append(torch.stack(parts).sum(0))
    return torch.stack(rows)


@pytest.mark.parametrize("chosen", [1, 2, 3, 4])
def test_sorted_dispatch_is_a_loop_over_tokens(chosen: int) -> None:
    """Sorting tokens by expert changes the cost and not the result, for any number of active experts."""
    layer = _experts(chosen)
    mixed, routing = layer(TOKENS)
    assert torch.allclose(mixed, _dense(layer, TOKENS), atol=1e-6)
    assert routing.chosen.shape == (40, chosen)
    assert routing.counts.tolist() == torch.bincount(routing.chosen.flatten(), minlength=4).tolist()
    assert int(routing.counts.sum()) == 40 * chosen


def test_expert_without_a_token_is_skipped() -> None:
    """An expert that nobody chooses has count 0 and no gradient, and the others do its work."""
    layer = _experts()
    layer.bias[2] = -10.0
    mixed, routing = layer(TOKENS)
    torch.autograd.backward(mixed.sum())
    assert int(routing.counts[2]) == 0
    assert layer.rise.grad is not None
    assert [bool(grad.any()) for grad in layer.rise.grad] == [True, True, False, True]
    assert torch.allclose(mixed, _dense(layer, TOKENS), atol=1e-6)


def test_bias_changes_the_choice_and_not_the_weights() -> None:
    """With all experts chosen a bias has nothing left to change; with two, the favoured one is always among them."""
    layer, before = _experts(chosen=4), _experts(chosen=4)(TOKENS)[0]
    layer.bias[3] = 10.0
    assert torch.allclose(layer(TOKENS)[0], before, atol=1e-6)
    two = _experts()
    two.bias[3] = 10.0
    mixed, routing = two(TOKENS)
    assert int(routing.counts[3]) == 40
    assert torch.allclose(mixed, _dense(two, TOKENS), atol=1e-6)
    assert not two.bias.requires_grad


def test_balance_by_hand() -> None:
    """b += u sign(mean - load): the overloaded goes down, the idle up, the mean one stays."""
    layer = _experts()
    layer.balance(torch.tensor([50, 20, 10, 0]), 0.001)
    assert layer.bias.tolist() == pytest.approx([-0.001, 0.0, 0.001, 0.001])


def test_balance_evens_the_load_out() -> None:
    """Step by step the busiest expert loses tokens, without a gradient."""
    layer = _experts()
    with torch.no_grad():
        layer.router.weight[0] = 0.0
        layer.router.weight[0, 0] = 5.0
    tokens = TOKENS.clone()
    tokens[:, 0] = tokens[:, 0].abs()
    before = layer(tokens)[1].counts
    for _ in range(200):
        layer.balance(layer(tokens)[1].counts, 0.01)
    after = layer(tokens)[1].counts
    assert after.max() - after.min() < (before.max() - before.min()) / 2


@torch.no_grad()
def test_balance_and_z_losses_by_hand() -> None:
    """E sum(f P) is 1 for an even router, E / k for one that sends all to the same; z is ln(E)^2 at zero scores."""
    layer = _experts(chosen=1)
    layer.router.weight.zero_()
    even = layer(TOKENS)[1]
    assert float(even.balance) == pytest.approx(1.0)
    assert float(even.z) == pytest.approx(float(torch.tensor(4.0).log() ** 2))
    assert (float(even.confidence), float(even.size)) == (0.25, 0.0)
    layer.router.weight[0] = 100.0
    one_sided = layer(TOKENS.abs())[1]
    assert float(one_sided.balance) == pytest.approx(4.0)
    assert float(one_sided.confidence) == pytest.approx(1.0)


def test_descent_on_the_balance_loss_evens_probabilities() -> None:
    """Its gradient lowers the mean probability of the expert with the largest share."""
    layer = _experts()
    routing = layer(TOKENS)[1]
    busiest = int(routing.counts.argmax())
    before = layer.router(TOKENS).softmax(-1).mean(0)[busiest]
    (slope,) = torch.autograd.grad(routing.balance, [layer.router.weight])
    with torch.no_grad():
        layer.router.weight -= 0.1 * slope
    assert layer.router(TOKENS).softmax(-1).mean(0)[busiest] < before


def test_noise_is_there_only_when_set_and_comes_from_its_generator() -> None:
    """Without noise, or with a deviation of 0, nothing changes and nothing is drawn; with it, a seed repeats it."""
    layer, plain = _experts(), _experts()(TOKENS)[0]

    def noisy(std: float, seed: int) -> tuple[Tensor, bool]:
        random = Generator().manual_seed(seed)
        before = random.get_state()
        layer.noise = Noise(std, random)
        return layer(TOKENS)[0], not torch.equal(random.get_state(), before)

    silent, drew = noisy(0.0, 1)
    assert torch.equal(silent, plain) and not drew
    first, drew = noisy(0.5, 1)
    assert drew and not torch.equal(first, plain)
    assert torch.equal(noisy(0.5, 1)[0], first)
    assert not torch.equal(noisy(0.5, 2)[0], first)
    layer.noise = None
    assert torch.equal(layer(TOKENS)[0], plain)


def test_token_that_is_not_finite_shows() -> None:
    """A NaN among the tokens comes out as NaN, in its own row and in the losses, and breaks no dispatch."""
    tokens = TOKENS.clone()
    tokens[5] = torch.nan
    mixed, routing = _experts()(tokens)
    assert mixed[5].isnan().all() and mixed[:5].isfinite().all() and mixed[6:].isfinite().all()
    assert routing.balance.isnan() and routing.z.isnan() and routing.confidence.isnan() and routing.size.isnan()
    assert int(routing.counts.sum()) == 80
