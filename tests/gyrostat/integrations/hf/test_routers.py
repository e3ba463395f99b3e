"""Which modules are routers, and what of their choices is counted: on modules of every odd kind, without a trainer."""

from collections import Counter
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from gyrostat.integrations.hf.expertload import ExpertLoad
from gyrostat.integrations.hf.notices import Notices
from gyrostat.integrations.hf.replacements import Replacements
from gyrostat.integrations.hf.routers import routers_of
from gyrostat.integrations.hf.weights import Weights


class Router(nn.Module):
    """Says what it is told to choose."""

    def __init__(self, ids: list[list[int]], experts: int = 4) -> None:
        super().__init__()
        self.num_experts, self.top_k, self.ids = experts, len(ids[0]), torch.tensor(ids)

    def forward(self, hidden: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return hidden, self.ids


class Layer(nn.Module):
    def __init__(self, gate: nn.Module) -> None:
        super().__init__()
        self.mlp = nn.Module()
        self.mlp.gate = gate

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        self.mlp.gate(hidden)
        return hidden


class Stack(nn.Module):
    """Layers, called in turn; ``turns`` times, as a looped model does."""

    def __init__(self, gates: list[nn.Module], turns: int = 1) -> None:
        super().__init__()
        self.layers, self.turns = nn.ModuleList(Layer(gate) for gate in gates), turns

    def forward(self, hidden: torch.Tensor, attention_mask: torch.Tensor | None = None) -> torch.Tensor:
        for _ in range(self.turns):
            for layer in self.layers:
                hidden = layer(hidden)
        return hidden


def counts(model: nn.Module, *calls: dict[str, Any]) -> Any:
    """What one step of these forwards comes to."""
    load, replacements = ExpertLoad(model, Notices()), Replacements()
    load.hook(replacements)
    for call in calls or ({},):
        model(torch.zeros(1, 2, 3), **call)
    replacements.undo()
    model(torch.zeros(1, 2, 3))
    taken = load.take()
    assert load.take() is None
    return None if taken is None else taken.tolist()


def test_forwards_of_a_step_add_up() -> None:
    """Micro-batches of one step are one count, layer by layer."""
    model = Stack([Router([[0, 1], [0, 2]]), Router([[3, 1], [3, 2]])])
    assert counts(model, {}, {}) == [[4, 2, 2, 0], [0, 2, 2, 4]]


def test_a_layer_that_is_run_twice_counts_twice() -> None:
    """A looped model sends its tokens through a router several times."""
    assert counts(Stack([Router([[0, 1], [0, 2]])], turns=2)) == [[4, 2, 2, 0]]


def test_padding_is_not_counted() -> None:
    """A position that the mask leaves out is no token; a mask of another shape says nothing of positions."""
    model = Stack([Router([[0, 1], [0, 2]])])
    assert counts(model, {"attention_mask": torch.tensor([[0, 1]])}) == [[1, 0, 1, 0]]
    assert counts(model, {"attention_mask": torch.ones(1, 1, 2, 2)}) == [[2, 1, 1, 0]]


def test_ids_of_other_ranks_are_not_counted() -> None:
    """With experts split over ranks a router may return ids that are none; they must not hit the memory behind."""
    assert counts(Stack([Router([[0, 4], [-1, 2]])])) == [[1, 0, 1, 0]]


def test_without_gradients_nothing_is_counted() -> None:
    """Generation and a reference model's log-probabilities are no training."""
    with torch.no_grad():
        assert counts(Stack([Router([[0, 1], [0, 2]])])) is None


def test_a_forward_that_throws_counts_nothing() -> None:
    """And the next one begins anew."""
    model = Stack([Router([[0, 1], [0, 2]])])
    load, replacements = ExpertLoad(model, Notices()), Replacements()
    load.hook(replacements)
    last = model.layers[0]
    last.forward = lambda hidden: last.mlp.gate(hidden) and 1 / 0  # type: ignore[method-assign,assignment]
    with pytest.raises(ZeroDivisionError):
        model(torch.zeros(1, 2, 3))
    assert load.take() is None


class MixtralSparseMoeBlock(nn.Module):
    """As Transformers 4 had it: the gate is a Linear, and the block takes the largest logits."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.experts, self.top_k = nn.Linear(3, 4, bias=False), nn.ModuleList(), 2

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        self.gate(hidden.reshape(-1, 3))
        return hidden


class Llama4Router(nn.Linear):
    """As Llama 4 has it: scores of all experts, and logits."""

    num_experts, top_k = 4, 2

    def forward(self, hidden: torch.Tensor) -> Any:
        logits = super().forward(hidden.reshape(-1, 3))
        return logits.sigmoid(), logits


@pytest.mark.parametrize("old", [True, False], ids=["a Linear", "Llama 4"])
def test_a_router_that_returns_logits_is_counted_by_the_largest(old: bool) -> None:
    """The few that are known to take the largest logits."""
    block = MixtralSparseMoeBlock() if old else Layer(Llama4Router(3, 4, bias=False))
    model = Stack([Router([[0, 1]])])
    model.layers[0] = block
    router = block.gate if old else block.mlp.gate
    with torch.no_grad():
        router.weight.copy_(torch.tensor([[0.0] * 3, [1.0] * 3, [-1.0] * 3, [2.0] * 3]))
    load, replacements = ExpertLoad(model, Notices()), Replacements()
    load.hook(replacements)
    model(torch.ones(1, 2, 3))
    assert load.take().tolist() == [[0, 2, 0, 2]]


@pytest.mark.parametrize("family", ["Mixtral", "Qwen2Moe", "Qwen3Moe", "Olmoe"])
def test_no_well_known_family_is_missed(family: str) -> None:
    """As Transformers 4 had them; hooks that match no module of a model tell of a run without experts."""
    block = type(f"{family}SparseMoeBlock", (MixtralSparseMoeBlock,), {})
    model = Stack([Router([[0, 1]])])
    model.layers[0] = block()
    known, unknown = routers_of(model)
    assert ([(router.experts, router.top_k) for router in known], unknown) == ([(4, 2)], [])


def test_experts_of_several_layers_are_not_taken_together() -> None:
    """Four layers of eight experts are no layer of thirty-two."""
    told = counts(Stack([Router([[0, 1], [0, 2]], experts=8) for _ in range(4)]))
    assert [len(layer) for layer in told] == [8, 8, 8, 8] and sum(map(sum, told)) == 16


def test_a_linear_gate_of_an_unknown_block_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """Whether it takes the largest logits, and of which, only the block knows: no guess is made."""
    model = Stack([Router([[0, 1]])])
    block = model.layers[0].mlp
    block.gate, block.experts, block.top_k = nn.Linear(3, 4), nn.ModuleList(), 2
    assert ExpertLoad(model, Notices()).layers == ()
    assert "layers.0.mlp.gate (Linear)" in capsys.readouterr().err


def test_other_gates_are_none(capsys: pytest.CaptureFixture[str]) -> None:
    """The gate of an attention or of a shared expert chooses nobody, and is not worth a word."""
    model = nn.Module()
    model.attention, model.mlp = nn.Module(), nn.Module()
    model.attention.gate, model.mlp.gate_proj = nn.Linear(3, 3), nn.Linear(3, 3)
    assert ExpertLoad(model, Notices()).layers == ()
    assert capsys.readouterr().err == ""


def test_a_layer_of_another_width_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """One table has one width; the commonest is told."""
    model = Stack([Router([[0, 1], [0, 2]]), Router([[0, 1], [0, 2]]), Router([[6, 7], [6, 7]], experts=8)])
    assert counts(model) == [[2, 1, 1, 0], [2, 1, 1, 0]]
    assert "layers.2.mlp.gate (8 experts)" in capsys.readouterr().err


class Waiting(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the operations that would make the host wait for a device."""

    NAMES = ("_local_scalar_dense", "is_nonzero", "nonzero", "equal", "item")

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen[func.overloadpacket._qualified_op_name.removeprefix("aten::")] += 1
        return func(*args, **(kwargs or {}))


def test_counting_and_looking_wait_for_no_device() -> None:
    """No value is asked for: it is handed to telemetry as it lies there."""
    model = Stack([Router([[0, 1], [0, 2]])])
    load, weights = ExpertLoad(model, Notices()), Weights(nn.Linear(2, 2), Notices())
    load.hook(Replacements())
    with Waiting() as waiting:
        model(torch.zeros(1, 2, 3), attention_mask=torch.tensor([[0, 1]]))
        assert load.take() is not None
        assert weights.finite() is not None
    assert not set(waiting.seen) & set(Waiting.NAMES)
