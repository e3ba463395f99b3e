"""Make the supervised base policy: ``python -m gyrostat_reference.warmup OUT.safetensors``.

It imitates worked examples of which a quarter have a wrong last digit, so that RL has something to learn.
About 70 CPU seconds; the result is checked in as ``base.safetensors``.
"""

import sys
from importlib import resources

import torch
from safetensors.torch import load, save_file
from torch import Generator, Tensor

from gyrostat_reference import task
from gyrostat_reference.model import LoopMoE
from gyrostat_reference.rollout import sample, score

STEPS, BATCH, WRONG = 400, 256, 0.25
LEARNING_RATE, RISE = 2e-3, 20
BALANCE, Z = 1e-2, 1e-3  # as in RL: a base trained without them has a quarter of its experts dead


def base_policy() -> LoopMoE:
    """The model with the weights that lie beside this module."""
    model = LoopMoE()
    weights = load(resources.files("gyrostat_reference").joinpath("base.safetensors").read_bytes())
    model.load_state_dict(weights)
    return model


def warm_up(steps: int = STEPS, seed: int = 0) -> LoopMoE:
    """Train a new model on worked examples."""
    torch.manual_seed(seed)
    random = Generator().manual_seed(seed)
    model = LoopMoE()
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE)
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = LEARNING_RATE * min(1.0, (step + 1) / RISE) * (1 - 0.9 * step / steps)
        optimizer.zero_grad()
        torch.autograd.backward(_imitation_loss(model, task.worked_examples(BATCH, WRONG, random)))
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return model


def _imitation_loss(model: LoopMoE, sequences: Tensor) -> Tensor:
    output = model(sequences[:, :-1])
    mask = task.answer_mask(sequences)
    likelihood = (score(output.logits, sequences).log_probs * mask).sum() / mask.sum()
    loss: Tensor = -likelihood + BALANCE * output.balance + Z * output.z
    return loss


def main() -> None:
    """Write the base policy and say how often it is right."""
    torch.set_num_threads(1)
    model = warm_up()
    save_file(model.state_dict(), sys.argv[1])
    random = Generator().manual_seed(1)
    rewards = task.verify(sample(model, task.draw_prompts(1024, random), random))
    print(f"{sum(p.numel() for p in model.parameters())} parameters, pass rate {rewards.mean():.3f}")


if __name__ == "__main__":
    main()
