"""open-instruct's console: a box with the title Metrics, a row for each prefix, ``optim   grad_norm: 0.19 | ...``.

Written from open-instruct's own source, commit e6c3044a (grpo_fast, model_utils). The part of a name before its slash
stands in column 1; a row that is too long goes on in the next, where column 1 is empty, and a name may be broken.
Numbers above 1e-5 have two decimals: an entropy of 0.004 reads 0.00. Good for coarse faults.
"""

import re
from collections.abc import Iterable

from gyrostat_agent.sources.logs.format import Format
from gyrostat_agent.sources.logs.lines import Line
from gyrostat_agent.sources.logs.numerals import number
from gyrostat_agent.sources.logs.said import Said, Told

_TOP = re.compile(r"[╭┌╔┏+][─━═-]+ Metrics [─━═-]+[╮┐╗┓+]?")
_BOTTOM = re.compile(r"[╰└╚┗+][─━═-]{3,}")
_SIDES = "│┃║|"
_GAP = re.compile(r"\s{2,}")
_MOST = 500  # rows; a box that has more is none
_BARE = ("other", "val")  # "val" is of the rollouts that are trained on and no evaluation


class OpenInstructReader:
    """Holds the box until it is whole."""

    def __init__(self) -> None:
        self._rows: list[tuple[str, str]] | None = None  # column 1 and the rest, of the box that is open
        self._rank = 0

    def read(self, line: Line) -> Iterable[Said]:
        """The whole box, with its last line; lines of others may stand between its own."""
        text = line.text.strip()
        if _TOP.match(text) is not None:
            before = self.end()
            self._rows, self._rank = [], max(line.rank, 0)
            return before
        if self._rows is None:
            return ()
        if _BOTTOM.match(text) is not None:
            return self.end()
        if len(text) > 2 and text[0] in _SIDES and text[-1] in _SIDES and len(self._rows) < _MOST:
            self._add(text[1:-1])
        return ()

    def end(self) -> Iterable[Said]:
        """What there is of a box that nothing closes."""
        rows, self._rows = self._rows, None
        values = _values(rows or ())
        if not values:
            return ()
        step = values.pop("training_step", None)
        whole = int(step) if step is not None and 0 <= step < 1e15 else None
        return (Told(values, whole, rank=self._rank),) if values else ()

    def _add(self, inner: str) -> None:
        """One row; joined to the one before where column 1 is empty."""
        rows, bare = self._rows, inner.strip()
        if rows is None:
            return
        first, *rest = _GAP.split(bare, maxsplit=1)
        indent = len(inner) - len(inner.lstrip())
        if rest and ":" not in first and indent <= 4:
            rows.append((first, rest[0]))
        elif rows and bare:
            prefix, text = rows[-1]
            rows[-1] = (prefix, f"{text} {bare}")


def _values(rows: Iterable[tuple[str, str]]) -> dict[str, float]:
    values: dict[str, float] = {}
    for prefix, text in rows:
        for pair in text.split("|"):
            name, colon, written = pair.rpartition(":")
            value = number(written.strip()) if colon else None
            if value is None:
                continue
            name = "".join(name.split())  # a name has no spaces: where there is one, it was broken there
            values[name if prefix in _BARE else f"{prefix}/{name}"] = value
    if "stop_rate" in values:
        values["truncated_fraction"] = 1.0 - values["stop_rate"]
    return values


def _sign(text: str) -> int:
    return 3 if _TOP.match(text.lstrip()) is not None else 0


OPEN_INSTRUCT = Format(
    "open-instruct", "open-instruct console", _sign, OpenInstructReader,
    {
        "loss/total_avg": "loss", "loss/policy_avg": "", "loss/kl_avg": "", "optim/grad_norm": "grad_norm",
        "policy/entropy_avg": "entropy", "policy/clipfrac_avg": "clip_fraction", "objective/kl*": "kl",
        "policy/approxkl_avg": "ppo_kl", "scores": "reward", "objective/scores": "reward", "lr": "learning_rate",
        "sequence_lengths": "response_length", "truncated_fraction": "truncated_fraction", "stop_rate": "",
        "debug/vllm_vs_local_logprob_diff_mean": "mismatch_diff", "debug/vllm_local_reverse_kl": "mismatch_kl",
        "ratio": "", "epoch": "", "episode": "",
    },
)  # fmt: skip
