import torch
from torch import Generator

from gyrostat_reference.model import LoopMoE, Shape
from gyrostat_reference.task import LENGTH, VOCABULARY, draw_prompts
from gyrostat_reference.warmup import base_policy


def test_expert_counts_come_out_of_the_forward_pass() -> None:
    """Counts have the shape (layers, loops, experts), and every token is counted twice in every loop."""
    output = LoopMoE()(torch.randint(0, VOCABULARY, (3, LENGTH)))
    assert output.counts.shape == (1, 4, 16)
    assert not output.counts.is_floating_point()
    assert output.counts.sum(-1).tolist() == [[3 * LENGTH * 2] * 4]


def test_sorted_experts_are_the_dense_mixture() -> None:
    """Sorting tokens by expert changes the cost and not the result."""
    layer = LoopMoE(Shape(width=8, heads=2, expert_width=4, experts=4)).block.experts
    tokens = torch.randn(10, 8)
    weights, chosen = layer.router(tokens).softmax(-1).topk(2, -1)
    weights = weights / weights.sum(-1, keepdim=True)
    inner = torch.nn.functional.gelu(torch.einsum("nw,ewi->nei", tokens, layer.rise))
    dense = torch.einsum("nei,eiw->new", inner, layer.fall)
    picked = dense.gather(1, chosen[..., None].expand(-1, -1, 8))
    assert torch.allclose(layer(tokens)[0], (picked * weights[..., None]).sum(1), atol=1e-5)


def test_the_base_policy_is_half_right() -> None:
    """The checked-in weights load, and leave RL something to learn."""
    from gyrostat_reference.rollout import sample
    from gyrostat_reference.task import verify

    random = Generator().manual_seed(0)
    rewards = verify(sample(base_policy(), draw_prompts(256, random), random))
    assert 0.4 < rewards.mean() < 0.7
