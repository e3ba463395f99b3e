"""Routers: which modules of a Transformers model choose experts, and what they chose, read from what they return.

Found by shape, not by a list of models: a module called ``gate`` or ``router`` that knows its number of experts and
returns the chosen ids (Mixtral, Qwen2-MoE, Qwen3-MoE, OLMoE, DeepSeek-V3, GPT-OSS and their like), or one of the
few known ones that return logits alone. One that is neither is named and left out: a guess would be a wrong count.
"""

from typing import Any, NamedTuple

_NAMES = ("gate", "router")
_CHOSEN_OUTSIDE = {  # before Transformers 5 the gate was a Linear, and its block took the largest logits
    "MixtralSparseMoeBlock", "Qwen2MoeSparseMoeBlock", "Qwen3MoeSparseMoeBlock", "OlmoeSparseMoeBlock",
}  # fmt: skip
_LOGITS_LAST = {"Llama4Router"}  # returns scores and logits; takes the largest logits


class Router(NamedTuple):
    """A module that chooses ``top_k`` of ``experts``. ``logits``: it returns logits alone, the largest are chosen."""

    name: str
    module: Any
    experts: int
    top_k: int
    logits: bool


def routers_of(model: Any) -> tuple[list[Router], list[str]]:
    """The model's routers in the order of its layers, and the names of what looks like one and cannot be read."""
    known: list[Router] = []
    unknown: list[str] = []
    blocks = dict(model.named_modules())
    for name, module in blocks.items():
        parent, _, last = name.rpartition(".")
        if last not in _NAMES or (last == "gate" and not _chooses(module, blocks.get(parent))):
            continue
        router = _read(name, module, blocks.get(parent))
        if router is None:
            unknown.append(f"{name} ({type(module).__name__})")
        else:
            known.append(router)
    return known, unknown


def chosen(router: Router, output: Any) -> Any:
    """The ids that a router chose, of shape (tokens, top_k); None where its output holds none.

    Not their weights: a chosen expert counts once, however little it is listened to.
    """
    parts = output if isinstance(output, (tuple, list)) else (output,)
    if router.logits:
        logits = parts[-1]
        fits = logits.is_floating_point() and logits.shape[-1] == router.experts
        return logits.topk(router.top_k, dim=-1).indices if fits else None
    for part in reversed(parts):
        whole = (
            hasattr(part, "dtype") and not (part.is_floating_point() or part.is_complex()) and part.element_size() > 1
        )
        if whole and part.dim() > 1 and part.shape[-1] == router.top_k:
            return part
    return None


def stack_of(name: str) -> str:
    """The module whose one call runs all layers: what lies before the first list of layers on a router's path."""
    parts = name.split(".")
    layers = next((i for i, part in enumerate(parts) if part.isdigit()), 0)
    return ".".join(parts[: max(layers - 1, 0)])


def _chooses(module: Any, parent: Any) -> bool:
    """False for the gates of other things: of an attention, of a recurrent cell."""
    kind = type(module).__name__.lower()
    return any(word in kind for word in ("router", "gate", "topk")) or hasattr(parent, "experts")


def _read(name: str, module: Any, parent: Any) -> Router | None:
    experts = _first((module, "num_experts"), (module, "n_routed_experts"), (module, "out_features"))
    top_k = _first(
        (module, "top_k"), (module, "num_experts_per_tok"), (parent, "top_k"), (parent, "num_experts_per_tok")
    )
    kind = type(module).__name__
    plain = kind == "Linear"
    if experts is None or top_k is None or (plain and type(parent).__name__ not in _CHOSEN_OUTSIDE):
        return None
    return Router(name, module, experts, top_k, plain or kind in _LOGITS_LAST)


def _first(*places: tuple[Any, str]) -> int | None:
    """The first attribute that is a count."""
    found = (getattr(owner, name, None) for owner, name in places)
    return next((n for n in found if isinstance(n, int) and not isinstance(n, bool) and n > 0), None)
