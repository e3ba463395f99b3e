"""Expert load: tokens routed to each expert in a step's training forwards, counted on the device by forward hooks.

Counted is each token that is no padding, once for each expert it was sent to, in forwards that record gradients:
no generation, no reference model, no evaluation. A forward that gradient checkpointing repeats is counted once:
the ids are kept while the stack of layers is called and counted when it returns; what runs in the backward pass
runs outside that call. Nothing is asked of the device, and no operation is added inside a layer.
"""

import sys
from collections import Counter
from collections.abc import Iterable
from typing import Any

from gyrostat.integrations.hf.notices import Notices
from gyrostat.integrations.hf.replacements import Replacements
from gyrostat.integrations.hf.routers import Router, chosen, routers_of, stack_of

_Kept = tuple[int, Any]  # place of the router, ids it chose


class ExpertLoad:
    """Counts for one model. A model without experts costs nothing and gives None."""

    def __init__(self, model: Any, notices: Notices) -> None:
        found, unknown = routers_of(model)
        self._routers, odd = _of_one_width(found)
        self._notices = notices
        self._counts: Any = None
        self._places: dict[tuple[Any, ...], Any] = {}
        self._mute: set[int] = set()  # routers whose output holds no ids
        if unknown or odd:
            names = ", ".join(unknown + odd)
            notices.say("routers", f"experts of {names} are not counted: how this router chooses is not known")
        modules = dict(model.named_modules())
        places = {r.name: i for i, r in enumerate(self._routers)}
        self._stacks = [
            _Stack(modules[path], [(places[r.name], r) for r in self._routers if stack_of(r.name) == path], self)
            for path in dict.fromkeys(stack_of(r.name) for r in self._routers)
        ]

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the routers counted: the rows of the counts, in order."""
        return tuple(router.name for router in self._routers)

    def hook(self, replacements: Replacements) -> None:
        """Watch the model until ``replacements`` are undone."""
        for stack in self._stacks:
            stack.hook(replacements)

    def take(self) -> Any:
        """Counts of the step, shape (layers, experts), on the device; None where nothing was counted. Begins anew."""
        counts, self._counts = self._counts, None
        if counts is None or len(self._mute) == len(self._routers):
            return None
        heard = [i for i in range(len(self._routers)) if i not in self._mute]
        return counts[:, :-1] if len(heard) == len(self._routers) else counts[heard, :-1]

    def choice(self, place: int, router: Router, output: Any) -> Any:
        """What ``router`` chose, or None; one whose output holds no ids is named once and left out."""
        if place in self._mute:
            return None
        ids = self._notices.guard(f"reading the choice of {router.name}", lambda: chosen(router, output))
        if ids is None:
            self._mute.add(place)
            text = f"experts of {router.name} are not counted: its output holds no ids of {router.top_k} experts"
            self._notices.say(f"router {router.name}", text)
        return ids

    def add(self, kept: list[_Kept], mask: Any) -> None:
        """Count what the layers of one forward chose."""
        groups: dict[tuple[Any, int, int], list[_Kept]] = {}
        for place, ids in kept:
            groups.setdefault((ids.device, ids.numel(), ids.shape[-1]), []).append((place, ids))
        with sys.modules["torch"].no_grad():
            for group in groups.values():
                counts = self._counted(group, mask)
                here = counts if self._counts is None else counts.to(self._counts.device, non_blocking=True)
                self._counts = here if self._counts is None else self._counts + here

    def _counted(self, group: list[_Kept], mask: Any) -> Any:
        """Counts of shape (layers, experts + 1) of ids of one shape; the last column is for what is not counted."""
        torch = sys.modules["torch"]
        none, first = self._routers[0].experts, group[0][1]
        ids = torch.stack([ids.reshape(-1) for _, ids in group]).to(torch.int64)
        left_out = (ids < 0) | (ids >= none)  # of an expert that another rank has
        if (padding := _padding(torch, mask, first)) is not None:
            left_out |= padding
        ids = ids.masked_fill(left_out, none) + self._rows([place for place, _ in group], first.device, none + 1)
        size = len(self._routers) * (none + 1)
        return _histogram(torch, ids.view(-1), size).view(-1, none + 1)

    def _rows(self, places: list[int], device: Any, width: int) -> Any:
        """Where each router's row begins; made once, for it is a copy to the device."""
        key = (*places, device)
        if key not in self._places:
            rows = sys.modules["torch"].tensor(places, dtype=sys.modules["torch"].int64).mul(width).unsqueeze(1)
            self._places[key] = rows.to(device)
        return self._places[key]


class _Stack:
    """One stack of layers: opens when it is called in a forward that records gradients, counts when it returns."""

    def __init__(self, module: Any, routers: list[tuple[int, Router]], load: ExpertLoad) -> None:
        self._module, self._routers, self._load = module, routers, load
        self._kept: list[_Kept] | None = None
        self._mask: Any = None
        self._records_gradients = sys.modules["torch"].is_grad_enabled

    def hook(self, replacements: Replacements) -> None:
        replacements.keep(self._module.register_forward_pre_hook(self._opened, with_kwargs=True).remove)
        replacements.keep(self._module.register_forward_hook(self._returned, always_call=True).remove)
        for place, router in self._routers:
            replacements.keep(router.module.register_forward_hook(self._chose(place, router)).remove)

    def _opened(self, _module: Any, _args: Any, kwargs: dict[str, Any]) -> None:
        if self._records_gradients():
            self._kept, self._mask = [], kwargs.get("attention_mask")

    def _chose(self, place: int, router: Router) -> Any:
        def hook(_module: Any, _args: Any, output: Any) -> None:
            if self._kept is not None and (ids := self._load.choice(place, router, output)) is not None:
                self._kept.append((place, ids))

        return hook

    def _returned(self, _module: Any, _args: Any, output: Any) -> None:
        if self._kept is None:
            return  # called for each token that is generated
        kept, mask = self._kept, self._mask
        self._kept = self._mask = None
        if kept and output is not None:  # None: the forward threw
            self._load._notices.guard("counting experts", lambda: self._load.add(kept, mask))


def _of_one_width(routers: list[Router]) -> tuple[list[Router], list[str]]:
    """The routers of the commonest number of experts; the others by name: one table has one width."""
    if not routers:
        return [], []
    width = Counter(r.experts for r in routers).most_common(1)[0][0]
    return [r for r in routers if r.experts == width], _named(r for r in routers if r.experts != width)


def _named(routers: Iterable[Router]) -> list[str]:
    return [f"{r.name} ({r.experts} experts)" for r in routers]


def _padding(torch: Any, mask: Any, ids: Any) -> Any:
    """True for a router's choices made for padding, one row; None where there is no mask of its tokens."""
    top_k = ids.shape[-1]
    if not isinstance(mask, torch.Tensor) or mask.dim() != 2 or mask.numel() * top_k != ids.numel():
        return None
    return (mask.to(ids.device) == 0).reshape(-1, 1).expand(-1, top_k).reshape(1, -1)


def _histogram(torch: Any, ids: Any, size: int) -> Any:
    """How often each id occurs. bincount is quicker on the host, and waits for the device elsewhere."""
    if ids.device.type == "cpu":
        return torch.bincount(ids, minlength=size)
    ones = torch.ones(1, dtype=torch.int64, device=ids.device).expand(ids.numel())
    return torch.zeros(size, dtype=torch.int64, device=ids.device).scatter_add_(0, ids, ones)
