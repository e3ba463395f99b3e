"""A GRPO run of TRL that needs no network and no GPU: a mixture of experts of 60,000 weights learns to write digits.

    python docs/examples/grpo_tiny.py                         as you would write it: nothing of Gyrostat in it
    python docs/examples/grpo_tiny.py --callback              with Gyrostat's three lines
    python docs/examples/grpo_tiny.py --callback --break-at 12    and a weight that becomes NaN after that step

For the tutorial (docs/tutorial.md). Needs trl, transformers and datasets.
"""

import argparse
import math
import os
from typing import Any

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", TRL_EXPERIMENTAL_SILENCE="1")

import torch
import transformers
from datasets import Dataset
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast, TrainerCallback
from trl import GRPOConfig, GRPOTrainer


def tokenizer() -> PreTrainedTokenizerFast:
    """One id a character."""
    vocab = {word: i for i, word in enumerate(["<pad>", "<bos>", "<eos>", "<unk>", *map(chr, range(32, 127))])}
    made = Tokenizer(models.WordLevel(vocab, unk_token="<unk>"))
    made.pre_tokenizer, made.decoder = pre_tokenizers.Split("", "isolated"), decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="<pad>", bos_token="<bos>", eos_token="<eos>", unk_token="<unk>",
        padding_side="left", model_input_names=["input_ids", "attention_mask"],
    )  # fmt: skip


def model() -> Any:
    """A Qwen3-MoE of two layers and eight experts."""
    torch.manual_seed(0)
    config = AutoConfig.for_model(
        "qwen3_moe", vocab_size=99, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=8, num_experts=8, num_experts_per_tok=2, moe_intermediate_size=16,
        max_position_embeddings=256, pad_token_id=0, bos_token_id=1, eos_token_id=2, output_router_logits=True,
    )  # fmt: skip
    return AutoModelForCausalLM.from_config(config)


def digits(completions: list[str], **_: Any) -> list[float]:
    """The reward: the share of digits."""
    return [sum(c.isdigit() for c in text) / max(1, len(text)) for text in completions]


class Break(TrainerCallback):
    """What may happen to anybody: a weight is NaN after a step. Once: who begins anew is spared."""

    def __init__(self, step: int, mark: str) -> None:
        self.step, self.mark = step, mark

    def on_step_end(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        if state.global_step == self.step and not os.path.exists(self.mark):
            open(self.mark, "w").close()
            with torch.no_grad():
                next(model.parameters()).fill_(math.nan)


def main() -> None:
    """Train."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--output_dir", default="runs/grpo")
    parser.add_argument("--callback", action="store_true", help="add Gyrostat's callback")
    parser.add_argument("--break-at", type=int, metavar="STEP", help="make a weight NaN after this step")
    parser.add_argument("--resume_from_checkpoint", default=None)
    given = parser.parse_args()
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    trainer = GRPOTrainer(
        model=model(), reward_funcs=[digits], processing_class=tokenizer(),
        train_dataset=Dataset.from_dict({"prompt": [f"{i % 10}+{i % 7}=" for i in range(64)]}),
        args=GRPOConfig(
            output_dir=given.output_dir, max_steps=given.steps, per_device_train_batch_size=8, num_generations=4,
            max_completion_length=16, logging_steps=1, save_steps=5, report_to="none", use_cpu=True,
            learning_rate=1e-3, bf16=False, seed=0, disable_tqdm=True,
        ),
    )  # fmt: skip
    if given.break_at is not None:
        trainer.add_callback(Break(given.break_at, f"{given.output_dir}.broken"))
    if given.callback:
        from gyrostat.integrations.transformers import GyrostatCallback

        trainer.add_callback(GyrostatCallback(trainer))
    trainer.train(resume_from_checkpoint=given.resume_from_checkpoint)


if __name__ == "__main__":
    main()
