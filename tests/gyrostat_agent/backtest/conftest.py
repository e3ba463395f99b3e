"""Tiny corpora, replayed through a small pack by the command that people call."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gyrostat_agent.cli.backtest import backtest

PACK = """
pack: small
groups:
  - name: all
    rules:
      - {alert: Noted, detector: level, with: {series: [loss], above: 1, needed: 1, of: 1}, severity: info,
         fault: loss_spike}
      - {alert: LossHigh, detector: level, with: {series: [loss], above: 10, needed: 1, of: 1}, severity: warning,
         fault: loss_spike}
      - {alert: LossGone, detector: level, with: {series: [loss], above: 100, needed: 1, of: 1}, severity: critical,
         fault: divergence, incident: divergence, inhibits: [LossHigh]}
      - {alert: KlHigh, detector: level, with: {series: [kl], above: 1, needed: 1, of: 1}, severity: critical,
         fault: kl_explosion, incident: mismatch}
playbooks:
  - {incident: divergence, rungs: [{remedy: turn, knobs: [{name: lr_scale, times: 0.5}]}, {remedy: page}]}
  - {incident: mismatch, rungs: [{remedy: page}]}
"""
Line = dict[str, Any]


@pytest.fixture
def line() -> Callable[..., Line]:
    """Makes a line of a corpus: a fault in the loss, unless told otherwise."""

    def make(*values: Any, **fields: Any) -> Line:
        series = [[step, value] for step, value in enumerate(values, 1)]
        usual = {"id": "F1", "kind": "loss_spike", "signal": "loss", "healthy": False, "series": series,
                 "onset_step": None, "must_fire_by_step": None}  # fmt: skip
        return usual | fields

    return make


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    """The small pack, in a file."""
    path = tmp_path / "small.yaml"
    path.write_text(PACK, encoding="utf-8")
    return path


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Writes lines into a corpus: what is text or bytes as it is."""

    def made(*lines: Line | str | bytes, name: str = "cases.jsonl") -> Path:
        path = tmp_path / name
        rows = (json.dumps(one) if isinstance(one, dict) else one for one in lines)
        path.write_bytes(b"".join((row.encode() if isinstance(row, str) else row) + b"\n" for row in rows))
        return path

    return made


@pytest.fixture
def called(pack: Path) -> Callable[..., Result]:
    """The command, called with the small pack."""
    return lambda *words: CliRunner().invoke(backtest, ["--pack", str(pack), *map(str, words)])


@pytest.fixture
def replayed(called: Callable[..., Result], write: Callable[..., Path]) -> Callable[..., dict[str, Any]]:
    """What the command says of these lines, as JSON."""

    def figures(*lines: Line) -> dict[str, Any]:
        result = called("--json", write(*lines))
        assert result.exit_code == 0, result.output
        found: dict[str, Any] = json.loads(result.stdout)
        return found

    return figures
