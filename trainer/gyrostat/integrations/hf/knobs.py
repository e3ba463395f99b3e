"""Knobs: the numbers of a Hugging Face trainer that may be turned, by the names that the playbooks turn.

Each is offered only where this trainer has it, set in every place that it is used in, and read back from there.
What TRL calls it stands in ``docs/trl_control.md``.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from gyrostat.integrations.hf.bonus import Bonus
from gyrostat.integrations.hf.temperature import Temperature
from gyrostat.knob import Knob


class Limits(NamedTuple):
    """Bounds, the largest change of one directive as a ratio and as a difference, and what the knob does."""

    low: float
    high: float
    max_factor: float | None
    max_step: float | None
    doc: str


# As in the reference trainer. A weight of the balance loss begins at 0.001 here, and tripling that mends nothing: it
# may go where it may go from 0.
LIMITS = {
    "lr_scale": Limits(0.01, 1.0, 2.0, None, "multiplies the scheduled learning rate"),
    "max_grad_norm": Limits(0.1, 2.0, 2.0, None, "the gradient is scaled down to this norm"),
    "kl_coef": Limits(1e-6, 0.05, 2.0, None, "beta: weight of the KL towards the reference policy"),
    "eps_lo": Limits(0.1, 0.3, None, 0.02, "epsilon: the ratio is clipped below at 1 - eps_lo"),
    "eps_hi": Limits(0.2, 0.4, None, 0.02, "epsilon_high: the ratio is clipped above at 1 + eps_hi"),
    "temperature": Limits(0.7, 1.2, None, 0.05, "of drawing completions, and of their log-probabilities"),
    "alpha_max": Limits(0.0, 0.2, 2.0, None, "largest entropy bonus (entropy_coef); 0 is none"),
    "min_entropy_floor": Limits(0.02, 1.45, 1.25, None, "the bonus grows below this entropy, nats a token"),
    "router_aux_coef": Limits(0.0, 0.1, None, None, "router_aux_loss_coef: weight of the router's balance loss"),
}


class Scale:
    """The factor on the learning rate. It stands in the optimizer only while that steps: neither schedules nor
    checkpoints ever see it."""

    def __init__(self) -> None:
        self.value = 1.0
        self._rates: list[tuple[Any, Any]] = []

    def put_in(self, optimizer: Any) -> None:
        """Right before the optimizer steps."""
        if self.value != 1.0:
            self._rates = [(group, group["lr"]) for group in optimizer.param_groups]
            for group, rate in self._rates:
                group["lr"] = rate * self.value

    def take_out(self) -> None:
        """Right after it."""
        for group, rate in self._rates:
            group["lr"] = rate
        self._rates = []


def offered(trainer: Any, scale: Scale, bonus: Bonus) -> Iterator[Knob]:
    """The knobs that this trainer has."""
    args = trainer.args
    if not getattr(trainer, "is_deepspeed_enabled", False):  # whose engine steps, and clips, by itself
        yield _knob("lr_scale", scale, "value")
        if args.max_grad_norm:
            yield _knob("max_grad_norm", args, "max_grad_norm")
    if hasattr(trainer, "reward_funcs"):
        if getattr(trainer, "beta", 0.0):  # at 0 no reference was loaded
            yield _knob("kl_coef", trainer, "beta")
        for name, attribute in (("eps_lo", "epsilon_low"), ("eps_hi", "epsilon_high")):
            if hasattr(trainer, attribute):
                yield _knob(name, trainer, attribute)
        temperature = Temperature(trainer)
        if temperature.offered:
            yield _made("temperature", temperature.get, temperature.set)
    if bonus.offered:
        yield _made("alpha_max", bonus.largest, bonus.set_largest)
        if bonus.has_floor:
            yield _made("min_entropy_floor", bonus.floor, bonus.set_floor)
    yield from _router(trainer)


def _router(trainer: Any) -> Iterator[Knob]:
    """The balance loss: TRL's own weight of it, or that of the model that adds it to its loss."""
    config: Any = getattr(trainer.model, "config", None)
    text: Any = config.get_text_config() if hasattr(config, "get_text_config") else config
    if not hasattr(text, "output_router_logits"):
        return
    if getattr(trainer, "aux_loss_enabled", False):  # a loss that was never asked for may not be there

        def put(value: float) -> None:
            trainer.router_aux_loss_coef = value
            if hasattr(text, "router_aux_loss_coef"):
                text.router_aux_loss_coef = value

        yield _made("router_aux_coef", lambda: float(trainer.router_aux_loss_coef), put)
    elif (
        not hasattr(trainer, "aux_loss_enabled")
        and text.output_router_logits
        and hasattr(trainer.model, "router_aux_loss_coef")
    ):
        yield _knob("router_aux_coef", trainer.model, "router_aux_loss_coef")


def _knob(name: str, owner: Any, attribute: str) -> Knob:
    return _made(name, lambda: float(getattr(owner, attribute)), lambda value: setattr(owner, attribute, value))


def _made(name: str, get: Callable[[], float], put: Callable[[float], None]) -> Knob:
    """Bounds are widened to where the user has put it: what stands there is no fault."""
    limits, now = LIMITS[name], get()
    low, high = min(limits.low, now), max(limits.high, now)
    return Knob(name, get, put, low, high, limits.max_factor, limits.max_step, doc=limits.doc)
