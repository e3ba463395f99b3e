"""What Transformers left out when it resumed: tensors of a checkpoint whose names the model does not have.

``train(resume_from_checkpoint=...)`` loads a file's names as they are and warns of the others. Of models whose
experts are fused in memory and single in the file (Transformers 5.24: Qwen2/3-MoE, Mixtral, OLMoE, DeepSeek-V3) it
leaves all experts as they were built. Only headers are read here, and nothing is changed: whoever resumes must know.
"""

import json
from pathlib import Path
from typing import Any

_MOST = 64 << 20  # bytes of a header that is read


def left_out(model: Any, folder: Path) -> list[str]:
    """Names in the checkpoint that the model does not have, in order; none where no weights can be read there."""
    if getattr(model, "peft_config", None):
        return []
    try:
        names = _names(folder)
    except (OSError, ValueError, AttributeError):
        return []
    return sorted(names - set(model.state_dict()))


def _names(folder: Path) -> set[str]:
    index, single = folder / "model.safetensors.index.json", folder / "model.safetensors"
    if index.exists():
        return set(json.loads(index.read_bytes())["weight_map"])
    with open(single, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > _MOST:
            return set()
        return set(json.loads(file.read(length))) - {"__metadata__"}
