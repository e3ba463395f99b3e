"""AReaL's console: ``Train step 12/500 done.``, then a box of names and values, four pairs a row, column by column.

Written from its own source, commit 4aef98d8 (stats_logger, printing). The order is column-major, but a name and its
value are neighbours in a row, so that each row is read as it comes.
"""

import re
from collections.abc import Iterable

from gyrostat_agent.sources.logs.format import Format
from gyrostat_agent.sources.logs.lines import Line
from gyrostat_agent.sources.logs.numerals import numbers
from gyrostat_agent.sources.logs.said import EVAL, TRAIN, Said, Step, Told

_DONE = re.compile(r"\bTrain step (\d{1,12})/\d{1,12} done\b")
_CELLS = re.compile(r"│ +([A-Za-z][^│\s]{0,200}) +│ +([^│\s]{1,40}) +(?=│)")


class ArealReader:
    """Knows which step a box belongs to: the line before it says so."""

    def __init__(self) -> None:
        self._step: int | None = None

    def read(self, line: Line) -> Iterable[Said]:
        """The numbers of a row of a box, the step of a line that ends one."""
        text = line.text
        if "│" in text:
            return self._row(numbers(_CELLS.findall(text)))
        if "Train step " in text and (found := _DONE.search(text)):
            self._step = int(found[1])
            return (Step(self._step),)
        return ()

    def end(self) -> Iterable[Said]:
        """Each row has said what it had to."""
        return ()

    def _row(self, values: dict[str, float]) -> Iterable[Said]:
        train = {name: value for name, value in values.items() if not name.startswith("eval-")}
        apart = {name: value for name, value in values.items() if name.startswith("eval-")}
        return [Told(told, self._step, phase) for told, phase in ((train, TRAIN), (apart, EVAL)) if told]


def _sign(text: str) -> int:
    if text.startswith("(AReaL) ") or ("Train step " in text and _DONE.search(text)):
        return 3
    return 1 if text.startswith(("╒═", "├─", "╘═")) else 0


_ACTOR = {
    "update/actor_loss/avg": "loss", "update/grad_norm": "grad_norm", "update/entropy/avg": "entropy",
    "kl_rewards/avg": "kl", "update/approx_kl/avg": "ppo_kl", "update/behave_approx_kl/avg": "mismatch_kl",
    "task_reward/avg": "reward", "final_reward/avg": "", "update/lr": "learning_rate",
    "update/clip_ratio/avg": "clip_fraction", "seq_len/avg": "response_length",
    "no_eos_ratios/avg": "truncated_fraction", "update/update_successful": "step_applied",
    "update/update_successful/avg": "step_applied", "advantages/avg": "",
}  # fmt: skip

AREAL = Format(
    "areal", "AReaL, console", _sign, ArealReader,
    {
        **{prefix + name: to for prefix in ("ppo_actor/", "grpo_actor/", "") for name, to in _ACTOR.items()},
        "ppo_critic/*": "", "ref/*": "", "timeperf/*": "", "timeperf/train_step": "step_time",
        "timeperf/save": "checkpoint_seconds",
    },
)  # fmt: skip
