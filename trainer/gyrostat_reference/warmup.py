"""The base policy, which RL starts from and is anchored to; and its making, by ``python -m gyrostat_reference.warmup``.

It imitates worked examples of which a quarter have a wrong last digit, so that RL has something to learn. About 70
CPU seconds; the result for the usual shape is checked in as ``base.safetensors`` (1.35 MB), and so is one that was
made without router losses, which the fault ``expert_imbalance`` starts from (0.7 MB, in half precision). Another
shape's is made when first asked for, and kept in ``$XDG_CACHE_HOME/gyrostat``.
"""

import argparse
import os
import sys
from collections.abc import Callable
from importlib import resources
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Generator, Tensor

from gyrostat_reference import task
from gyrostat_reference.model import LoopMoE, Shape
from gyrostat_reference.rollout import draw, score

BASE = "base.safetensors"
_VERSION = 2  # of the warm-up: what was made by another is another base
STEPS, BATCH, WRONG = 400, 256, 0.25
LEARNING_RATE, RISE = 2e-3, 20
BALANCE, Z = 1e-2, 1e-3  # as in RL: a base trained without them has a quarter of its experts dead


class BaseError(ValueError):
    """A reference policy that cannot be loaded, with the reason."""


def base_policy(shape: Shape | None = None, path: Path | None = None, name: str = BASE) -> LoopMoE:
    """The reference policy at ``path``, else the one called ``name`` beside this module; raises BaseError.

    For a shape that it was not made for, the one of the cache, made where there is none.
    """
    shape = shape or Shape()
    if name != BASE and (path is not None or shape != Shape()):
        raise BaseError(
            f"{name} is of the usual shape, and there is no other like it: leave path and shape as they are"
        )
    if path is None and shape != Shape():
        path = cached(shape)
    try:
        body = path.read_bytes() if path else resources.files("gyrostat_reference").joinpath(name).read_bytes()
    except OSError as error:
        raise BaseError(f"the reference policy {path or name} cannot be read: {error.strerror}") from None
    return _loaded(shape, body, str(path or name))


def cached(shape: Shape, say: Callable[[str], None] = lambda line: print(line, file=sys.stderr)) -> Path:
    """Where the base policy of ``shape`` lies; made first where it isn't there, which takes a minute or two."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gyrostat"
    path = home / f"base-v{_VERSION}-{'-'.join(str(size) for size in shape)}.safetensors"
    if not path.exists():
        say(f"making the base policy of {shape.loops} loops, {shape.chosen} of {shape.experts} experts: {path}")
        body = save(warm_up(shape=shape, say=say).state_dict())
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = path.with_suffix(f".{os.getpid()}.tmp")
        draft.write_bytes(body)
        draft.rename(path)  # two ranks may make it at once: the same bits
    return path


def warm_up(
    steps: int = STEPS, seed: int = 0, shape: Shape | None = None, *, balanced: bool = True,
    say: Callable[[str], None] = lambda line: None,
) -> LoopMoE:  # fmt: skip
    """Train a new model on worked examples; ``balanced`` with the router losses."""
    torch.manual_seed(seed)
    random = Generator().manual_seed(seed)
    model = LoopMoE(shape)
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE)
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = LEARNING_RATE * min(1.0, (step + 1) / RISE) * (1 - 0.9 * step / steps)
        optimizer.zero_grad()
        loss = _imitation_loss(model, task.worked_examples(BATCH, WRONG, random), balanced)
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 50 == 0:
            say(f"warm-up {step} of {steps}, loss {float(loss.detach()):.3f}")
    return model


def _imitation_loss(model: LoopMoE, sequences: Tensor, balanced: bool) -> Tensor:
    output = model(sequences[:, :-1])
    mask = task.answer_mask(sequences)
    loss: Tensor = -(score(output.logits, sequences).log_probs * mask).sum() / mask.sum()
    return loss + BALANCE * output.balance + Z * output.z if balanced else loss


def _loaded(shape: Shape, body: bytes, name: str) -> LoopMoE:
    """A model with the weights in ``body``; the bias, which older files lack, starts at 0."""
    model = LoopMoE(shape)
    try:
        weights = {key: tensor.float() for key, tensor in load(body).items()}
        missing, unknown = model.load_state_dict(weights, strict=False)
    except (SafetensorError, RuntimeError) as error:
        detail = str(error).replace("\n\t", " ")
        raise BaseError(
            f"the reference policy {name} does not fit {shape.loops} loops and {shape.experts} experts: {detail}"
        ) from None
    if unknown or set(missing) - {"block.experts.bias"}:
        raise BaseError(f"the reference policy {name} is another model's: {', '.join([*unknown, *missing])}")
    return model


def main() -> None:
    """Write a base policy and say how often it is right."""
    parser = argparse.ArgumentParser("gyrostat_reference.warmup", description="Make a base policy.")
    parser.add_argument("out", type=Path, metavar="OUT.safetensors")
    parser.add_argument("--loops", type=int, default=Shape().loops)
    parser.add_argument("--active-experts", type=int, default=Shape().chosen)
    parser.add_argument("--unbalanced", action="store_true", help="without router losses")
    parser.add_argument("--half", action="store_true", help="half precision, half the size")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    shape = Shape(loops=arguments.loops, chosen=arguments.active_experts)
    model = warm_up(shape=shape, balanced=not arguments.unbalanced, say=print)
    weights = model.half().state_dict() if arguments.half else model.state_dict()
    arguments.out.write_bytes(save(weights))
    model.float()
    random = Generator().manual_seed(1)
    rewards = task.verify(draw(model, task.draw_prompts(1024, random), random).sequences)
    print(f"{sum(p.numel() for p in model.parameters())} parameters, pass rate {rewards.mean():.3f}")


if __name__ == "__main__":
    main()
