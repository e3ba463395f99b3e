"""NeMo-RL's console: a block of bulleted lines under ``===== Step 12/500 =====``.

Written from its own source, commit 7ea279ab (algorithms/grpo, sft). The header comes first; then sections, each a
heading and ``• Name: value`` lines. Gradient norm, entropy and learning rate are not among them: TensorBoard has those.
"""

import re
from collections.abc import Iterable

from gyrostat_agent.sources.logs.format import Format
from gyrostat_agent.sources.logs.lines import Line
from gyrostat_agent.sources.logs.numerals import number
from gyrostat_agent.sources.logs.said import EVAL, RESUMED, SAVED, TRAIN, Note, Said, Step, Told

_HEAD = re.compile(r"={5,80} Step (\d{1,12})/\d{1,12} ={5,80}")
_BULLET = re.compile(r"\s*[•-] ([^:]{1,80}): +([^\s(]{1,40})")
_SECTIONS = (  # what a heading holds, and what is put before the names under it
    ("Validation Results", "", EVAL),
    ("Validation Timing", "timing/", EVAL),
    ("Training Results", "", TRAIN),
    ("Timing", "timing/", TRAIN),
    ("Performance Metrics", "performance/", TRAIN),
)
_SAVED = re.compile(r"Saving checkpoint for step (\d{1,12})")
_RESUMED = re.compile(r"(?:Resuming|Loading) .{0,200}\bstep_(\d{1,12})\b")


class NemoReader:
    """Knows which step and section a line belongs to."""

    def __init__(self) -> None:
        self._step: int | None = None
        self._prefix, self._phase = "", ""

    def read(self, line: Line) -> Iterable[Said]:
        """A number for a line of a section, the step for a header."""
        text = line.text
        if self._phase and (found := _BULLET.match(text)):
            value = number(found[2])
            told = {} if value is None else {self._prefix + found[1].strip(): value}
            return (Told(told, self._step, self._phase),)
        if "= Step " in text and (found := _HEAD.search(text)):
            self._step, self._phase = int(found[1]), ""
            return (Step(self._step),)
        section = next((one for one in _SECTIONS if one[0] in text), None) if text.rstrip().endswith(":") else None
        if section is not None:
            _, self._prefix, self._phase = section
            return (Told({}, self._step),)
        return _notes(text)

    def end(self) -> Iterable[Said]:
        """Each line has said what it had to."""
        return ()


def _notes(text: str) -> Iterable[Said]:
    if "Saving checkpoint" in text and (found := _SAVED.search(text)):
        return (Note(SAVED, int(found[1])),)
    if "step_" in text and (found := _RESUMED.search(text)):
        return (Note(RESUMED, int(found[1])),)
    return ()


def _sign(text: str) -> int:
    if "= Step " in text and _HEAD.search(text):
        return 2
    return 3 if text.startswith(("📊 Training Results", "▶ Preparing batch", "  • Generation KL Error")) else 0


NEMO_RL = Format(
    "nemo_rl", "NeMo-RL, console", _sign, NemoReader,
    {
        "Loss": "loss", "Generation KL Error": "mismatch_kl", "Avg Reward": "reward", "Avg Total Reward": "reward",
        "Avg Filtered Reward": "", "Mean Generation Length": "response_length", "Draft Loss": "",
        "timing/Total step time": "step_time", "timing/checkpointing": "checkpoint_seconds",
        "timing/train/checkpointing": "checkpoint_seconds", "timing/*": "", "performance/*": "",
        # TensorBoard's names, under train/
        "train/loss": "loss", "train/grad_norm": "grad_norm", "train/reward": "reward", "train/lr": "learning_rate",
        "train/gen_kl_error": "mismatch_kl", "train/approx_entropy": "entropy", "train/kl_penalty": "kl",
        "train/policy_kl_error": "", "train/js_divergence_error": "", "train/token_mult_prob_error": "",
    },
)  # fmt: skip
