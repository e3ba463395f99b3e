"""Rewards: what each reward function returned, looked at before TRL sums it.

TRL drops a NaN by ``nansum``: the run goes on, with a reward that is not the one that was asked for. The functions
are watched, not changed: arguments, results and errors pass through as they are. None is no fault: it is how a
function says that it has nothing to say of a completion.
"""

import functools
import math
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from gyrostat.integrations.hf.notices import Notices
from gyrostat.integrations.hf.replacements import Replacements


class _Seen(NamedTuple):
    """What one function returned: how many values it told, how many finite ones, their sum; the span of all of them."""

    told: int
    finite: int
    total: float
    low: float
    high: float


class Rewards:
    """Watches the reward functions of a TRL trainer; of one without any, nothing."""

    def __init__(self, trainer: Any, notices: Notices) -> None:
        self._trainer, self._notices = trainer, notices
        self._seen: dict[str, _Seen] = {}
        self._said_nothing: set[str] = set()
        self._scores: dict[str, Any] = {}  # of reward models: tensors, that nobody waits for

    def watch(self, replacements: Replacements) -> None:
        """Watch them until ``replacements`` are undone. The user's own list is left as it is."""
        functions = getattr(self._trainer, "reward_funcs", None)
        if not isinstance(functions, list) or not functions:
            return
        names = getattr(self._trainer, "reward_func_names", None) or []
        names = [str(names[i]) if i < len(names) else getattr(f, "__name__", f"{i}") for i, f in enumerate(functions)]
        watched = [self._watched(f, name, replacements) for f, name in zip(functions, names, strict=True)]
        replacements.put(self._trainer, "reward_funcs", watched)

    def take(self) -> dict[str, Any]:
        """What was returned since the last time.

        ``returned/<function>/rewards`` is the mean of the finite values, or what is not finite where none is: then
        the function is lost, and that is poison. A few that are not finite show in ``/min`` and ``/max``, and as
        ``reward_missing_fraction``, the share of the worst function, which has a rule of its own. None, which is
        absent, takes the place of the NaN that TRL makes of a function that said nothing of any completion.
        """
        seen, self._seen = self._seen, {}
        scores, self._scores = self._scores, {}
        values: dict[str, Any] = {}
        for name in self._said_nothing - seen.keys():
            values |= dict.fromkeys((f"rewards/{name}/mean", f"rewards/{name}/std"))
        self._said_nothing.clear()
        for name, s in seen.items():
            values |= _told(name, s.total / s.finite if s.finite else s.high, s.low, s.high)
        for name, score in scores.items():
            values |= _told(name, score.mean(), score.amin(), score.amax())
        if seen:
            values["reward_finite"] = sum(s.finite for s in seen.values()) / sum(s.told for s in seen.values())
            values["reward_missing_fraction"] = max(1.0 - s.finite / s.told for s in seen.values())
        return values

    def _watched(self, function: Any, name: str, replacements: Replacements) -> Any:
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(function, torch.nn.Module):  # a reward model: TRL reads its logits
            replacements.keep(function.register_forward_hook(lambda _m, _a, out: self._scored(name, out)).remove)
            return function
        if _is_async(function):

            async def watched_async(*args: Any, **kwargs: Any) -> Any:
                returned = await function(*args, **kwargs)
                self._looked(name, lambda: returned)
                return returned

            return _alike(watched_async, function)

        def watched(*args: Any, **kwargs: Any) -> Any:
            returned = function(*args, **kwargs)
            self._looked(name, lambda: returned)
            return returned

        return _alike(watched, function)

    def _scored(self, name: str, output: Any) -> None:
        def keep() -> None:
            if self._trainer.model.training:
                self._scores[name] = output.logits[:, 0].detach().float()

        self._notices.guard(f"looking at what {name} returned", keep)

    def _looked(self, name: str, returned: Callable[[], Any]) -> None:
        self._notices.guard(f"looking at what {name} returned", lambda: self._look(name, returned()))

    def _look(self, name: str, returned: Any) -> None:
        if not self._trainer.model.training:
            return  # an evaluation's rewards are no step's
        numbers = _numbers(returned)
        if numbers is None:
            text = f"what reward function {name} returns is not looked at: {type(returned).__name__}"
            self._notices.say(f"reward {name}", text)
        elif not numbers:
            self._said_nothing.add(name)
        else:
            self._seen[name] = _joined(self._seen.get(name), _summed(numbers))


def _told(name: str, mean: Any, low: Any, high: Any) -> dict[str, Any]:
    """Not called ``reward``: rules that follow the reward itself would follow every part of it too."""
    return {f"returned/{name}/rewards": mean, f"returned/{name}/min": low, f"returned/{name}/max": high}


def _numbers(returned: Any) -> list[float] | None:
    """The values, without None; None for what looking at would use up (an iterator) or would wait for (a device)."""
    if hasattr(returned, "tolist"):
        device = getattr(returned, "device", "cpu")
        if getattr(device, "type", device) != "cpu":
            return None
        returned = returned.detach().float().tolist() if hasattr(returned, "detach") else returned.tolist()
    if not isinstance(returned, (list, tuple)):
        return None
    if any(getattr(getattr(v, "device", None), "type", "cpu") != "cpu" for v in returned):
        return None
    return [float(v) for v in returned if v is not None]


def _summed(numbers: list[float]) -> _Seen:
    finite = [n for n in numbers if math.isfinite(n)]
    if any(math.isnan(n) for n in numbers):  # min and max of a list with a NaN depend on its place
        return _Seen(len(numbers), len(finite), math.fsum(finite), math.nan, math.nan)
    return _Seen(len(numbers), len(finite), math.fsum(finite), min(numbers), max(numbers))


def _joined(first: _Seen | None, second: _Seen) -> _Seen:
    """Two calls of one function in a step are one."""
    if first is None:
        return second
    spans = [first.low, first.high, second.low, second.high]
    odd = any(math.isnan(n) for n in spans)
    low, high = (math.nan, math.nan) if odd else (min(spans), max(spans))
    return _Seen(first.told + second.told, first.finite + second.finite, first.total + second.total, low, high)


def _is_async(function: Any) -> bool:
    """True where calling gives a coroutine, as TRL asks: a function, a partial of one, or an object that is called."""
    import inspect  # 3 ms of an import that is to take 25; whoever has Transformers has it

    while isinstance(function, functools.partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def _alike(watched: Any, function: Any) -> Any:
    """``watched`` under the function's own name, by which TRL logs it; a partial and an object may have none."""
    return functools.update_wrapper(watched, function, updated=())
