"""Tiny models of six MoE families and a dense one, a tokenizer of 100 characters, and trainers for them. Offline."""

import os
import warnings
from pathlib import Path
from typing import Any

os.environ.update(HF_HUB_OFFLINE="1", TRL_EXPERIMENTAL_SILENCE="1", TOKENIZERS_PARALLELISM="false")
warnings.simplefilter("ignore")

import torch  # noqa: E402, they read the environment as they come
import transformers  # noqa: E402
from datasets import Dataset  # noqa: E402
from tokenizers import Tokenizer, decoders, models, pre_tokenizers  # noqa: E402
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast  # noqa: E402

torch.set_num_threads(1)
transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

EXPERTS, TOP_K = 8, 2
_MOE = {"num_experts_per_tok": TOP_K}
FAMILIES: dict[str, dict[str, Any]] = {
    "qwen3_moe": {**_MOE, "num_experts": EXPERTS, "moe_intermediate_size": 16, "head_dim": 8},
    "mixtral": {**_MOE, "num_local_experts": EXPERTS},
    "olmoe": {**_MOE, "num_experts": EXPERTS},
    "qwen2_moe": {
        **_MOE, "num_experts": EXPERTS, "moe_intermediate_size": 16, "shared_expert_intermediate_size": 16,
    },
    "gpt_oss": {
        **_MOE, "num_local_experts": EXPERTS, "head_dim": 8, "sliding_window": 64,
        "layer_types": ["sliding_attention", "full_attention"],
    },
    "deepseek_v3": {
        **_MOE, "n_routed_experts": EXPERTS, "moe_intermediate_size": 16, "n_group": 2, "topk_group": 1,
        "first_k_dense_replace": 1, "q_lora_rank": 16, "kv_lora_rank": 16, "qk_rope_head_dim": 8,
        "qk_nope_head_dim": 8, "v_head_dim": 8, "n_shared_experts": 1, "num_key_value_heads": 4,
    },
    "llama": {},
}  # fmt: skip


def tokenizer() -> PreTrainedTokenizerFast:
    """One id a character."""
    vocab = {word: i for i, word in enumerate(["<pad>", "<bos>", "<eos>", "<unk>", *map(chr, range(32, 127)), "\n"])}
    made = Tokenizer(models.WordLevel(vocab, unk_token="<unk>"))
    made.pre_tokenizer, made.decoder = pre_tokenizers.Split("", "isolated"), decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="<pad>", bos_token="<bos>", eos_token="<eos>", unk_token="<unk>",
        padding_side="left", model_input_names=["input_ids", "attention_mask"],
    )  # fmt: skip


def model(kind: str, **more: Any) -> Any:
    """A model of the family with weights of its own, the same each time."""
    torch.manual_seed(0)
    base = {
        "vocab_size": len(tokenizer()), "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 256, "pad_token_id": 0,
        "bos_token_id": 1, "eos_token_id": 2,
    }  # fmt: skip
    return AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **{**base, **FAMILIES[kind], **more}))


def sums(count: int = 64) -> Dataset:
    """Prompts like ``3+4=``."""
    return Dataset.from_dict({"prompt": [f"{i % 10}+{i % 7}=" for i in range(count)]})


def digits(completions: list[str], **_: Any) -> list[float]:
    """A reward: the share of digits."""
    return [sum(ch.isdigit() for ch in c) / max(1, len(c)) for c in completions]


def short(completions: list[str], **_: Any) -> list[float]:
    """A reward: near eight characters."""
    return [-abs(len(c) - 8) / 8 for c in completions]


def grpo(
    folder: Path, *, rewards: Any = None, kind: str = "qwen3_moe", steps: int = 6, hidden: int = 32, **more: Any
) -> Any:
    """A GRPO trainer of a tiny model that has not begun."""
    from trl import GRPOConfig, GRPOTrainer

    settings = {
        "output_dir": str(folder), "max_steps": steps, "per_device_train_batch_size": 8, "num_generations": 4,
        "max_completion_length": 16, "logging_steps": 1, "save_strategy": "no", "report_to": "none", "use_cpu": True,
        "learning_rate": 1e-3, "bf16": False, "seed": 0, "disable_tqdm": True,
    }  # fmt: skip
    return GRPOTrainer(
        model=model(kind, hidden_size=hidden, **({"output_router_logits": True} if FAMILIES[kind] else {})),
        reward_funcs=rewards or [digits, short],
        args=GRPOConfig(**{**settings, **more}),
        train_dataset=sums(),
        processing_class=tokenizer(),
    )


def plain(folder: Path, *, kind: str = "llama", steps: int = 6, trained: Any = None, **more: Any) -> Any:
    """Transformers' own Trainer, on texts of different lengths, padded."""
    from transformers import DataCollatorForLanguageModeling, Trainer, TrainingArguments

    words = tokenizer()
    rows = [words("ab 1+2=3"[: 3 + i % 6] * (1 + i % 3))["input_ids"] for i in range(48)]
    settings = {
        "output_dir": str(folder), "max_steps": steps, "per_device_train_batch_size": 4, "logging_steps": 1,
        "save_strategy": "no", "report_to": "none", "use_cpu": True, "seed": 0, "disable_tqdm": True,
    }  # fmt: skip
    return Trainer(
        model=trained if trained is not None else model(kind),
        args=TrainingArguments(**{**settings, **more}),
        train_dataset=Dataset.from_dict({"input_ids": rows}),
        data_collator=DataCollatorForLanguageModeling(words, mlm=False),
    )


def digest(trained: Any) -> str:
    """Of every bit of the weights."""
    import hashlib

    found = hashlib.sha256()
    for name, tensor in sorted(trained.state_dict().items()):
        found.update(name.encode() + tensor.detach().contiguous().numpy().tobytes())
    return found.hexdigest()
