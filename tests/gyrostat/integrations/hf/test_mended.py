"""Real GRPO runs that something happens to, under ``gyrostat run``: found, mended, and trained to the last step.

The user's script is mend_grpo.py: three lines of Gyrostat, no other change.
"""

import json
import math
import subprocess
import sys
import time
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import pytest
from sdk_runs import records
from trl_runs import HERE, PYTHON, WORLD, need_trl

import gyrostat_rules.packs
from gyrostat.wire.records import ExpertLoad

pytestmark = pytest.mark.trl
_DEADLINE = 150.0


class Mended(NamedTuple):
    """What the run came to, and the agent's entries about it."""

    result: dict[str, Any]
    entries: list[dict[str, Any]]
    run: Path

    def done(self) -> list[tuple[str, str]]:
        """Remedies by what came of them, in order."""
        found = [(e["data"].get("remedy", ""), e["state"]) for e in self.entries if e["kind"] == "action"]
        return [each for each in found if each[1] == "done"]

    def incidents(self) -> list[tuple[str, str]]:
        """Each incident's kind, and how it stood at the end."""
        kinds: dict[str, str] = {}
        states: dict[str, str] = {}
        for entry in (e for e in self.entries if e["kind"] == "incident"):
            kinds.setdefault(entry["subject"], entry["data"].get("incident_kind", ""))
            states[entry["subject"]] = entry["state"]
        return [(kinds[subject], state) for subject, state in states.items()]


def _gyrostat(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gyrostat_agent", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def _certified(run: Path) -> bool:
    listed = _gyrostat("checkpoints", "list", "--json", str(run))
    return listed.returncode == 0 and any(each["certified"] for each in json.loads(listed.stdout))


def _mended(fault: str, folder: Path, *options: str) -> Mended:
    """Train under the fault; the gate opens once there is a checkpoint to go back to."""
    need_trl()
    run, gate = folder / "run", folder / "gate"
    run.mkdir(mode=0o700)
    script = [PYTHON, "-W", "ignore", str(HERE / "mend_grpo.py"), fault, str(folder / "work"), str(gate)]
    mode = ["--mode", "act", "--no-approvals", "--listen", "", "--run-dir", str(run), *options]
    command = [sys.executable, "-m", "gyrostat_agent", "run", *mode, "--", *script]
    with open(folder / "out", "w+") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, text=True, env=WORLD)
        try:
            end = time.monotonic() + _DEADLINE
            while process.poll() is None:
                assert time.monotonic() < end, (folder / "out").read_text()[-3000:]
                if not gate.exists() and (folder / "work" / "out" / "checkpoint-5").exists() and _certified(run):
                    gate.touch()
                time.sleep(0.1)
        finally:
            process.terminate()
            process.wait(20)
    said = (folder / "out").read_text()
    assert process.returncode == 0, said[-3000:]
    result = json.JSONDecoder().raw_decode(said.rpartition("RESULT ")[2])[0]
    return Mended(result, json.loads(_gyrostat("incidents", "--all", "--json", str(run)).stdout), run)


def test_nan_weights_are_rolled_back_within_the_process(tmp_path: Path) -> None:
    """NaN in a weight after step 8: back to checkpoint-5 before the next generation dies of it, and on to the end."""
    found = _mended("nan_weights", tmp_path)
    assert (found.result["step"], found.result["finite"]) == (24, True)
    assert found.incidents() == [("nonfinite", "resolved")]
    assert found.done() == [("rollback", "done")]
    assert found.result["steps"][:12] == [1, 2, 3, 4, 5, 6, 7, 8, 6, 7, 8, 9]


def test_a_reward_that_is_nan_is_found_and_gone_back_from(tmp_path: Path) -> None:
    """TRL sums it away and goes on; here the steps that were taken without a reward are undone."""
    found = _mended("nan_reward", tmp_path)
    assert (found.result["step"], found.result["finite"]) == (40, True)
    assert found.incidents() == [("nonfinite", "resolved")]
    assert found.done() == [("rollback", "done")]


def test_a_prompt_that_poisons_the_loss_is_passed_over(tmp_path: Path) -> None:
    """Three epochs with a prompt whose loss is NaN: no such step is applied, and the prompt never comes again."""
    found = _mended("poisoned", tmp_path)
    assert (found.result["step"], found.result["finite"]) == (44, True)
    assert found.incidents() == [("nonfinite", "resolved")]
    assert found.done() == [("skip_data", "done")]
    assert 2 <= found.result["losses"] <= 3
    assert found.result["steps"] == list(range(1, 45))


def test_an_entropy_that_collapses_is_brought_back(tmp_path: Path) -> None:
    """A reward for one letter: the entropy falls below 0.3 nats, and ends above it by TRL's own bonus turned on."""
    found = _mended("entropy", tmp_path)
    entropy = found.result["entropy"]
    assert min(entropy[:40]) < 0.15
    assert fmean(entropy[-10:]) > 0.3
    assert found.incidents() == [("entropy", "resolved")]
    assert found.done() == [("turn", "done")]
    assert found.result["finite"]


def test_experts_that_collapse_are_balanced_again(tmp_path: Path) -> None:
    """Two of eight experts get nearly all tokens: the balance loss is raised until all are of use again."""
    found = _mended("router", tmp_path)
    shares = [_effective(record.load) for record in records(found.run) if record.load is not None]
    assert min(shares[20:30]) < 0.35
    assert fmean(shares[-10:]) > 0.5
    assert ("experts", "resolved") in found.incidents()
    assert found.done()[0] == ("turn", "done")


def test_a_killed_trainer_goes_on_from_the_certified_checkpoint(tmp_path: Path) -> None:
    """SIGKILL, as the kernel does when memory is out: a new process, checkpoint-5, and on to the last step."""
    pack = tmp_path / "throughput.yaml"
    pack.write_text(_restarting((Path(gyrostat_rules.packs.__file__).parent / "throughput.yaml").read_text()))
    found = _mended("killed", tmp_path, "--rules", str(pack))
    assert (found.result["step"], found.result["finite"]) == (20, True)
    assert found.result["steps"] == list(range(6, 21))
    assert found.incidents() == [("crash", "resolved")]
    assert found.done() == [("restart", "done")]


def _restarting(pack: str) -> str:
    """The pack with a restart before the page, as a user writes it who wants that."""
    page = "  - incident: crash\n    rungs:\n"
    assert page in pack
    rung = "      - {remedy: restart, horizon: 10, irreversible: true}\n"
    return pack if page + rung in pack else pack.replace(page, page + rung)


def _effective(load: ExpertLoad) -> float:
    """The share of experts in use, by the entropy of their load; of the worst layer."""
    shares = [[count / sum(counts) for count in counts] for _, _, counts in load.rows()]
    return min(math.exp(-sum(s * math.log(s) for s in each if s)) / len(each) for each in shares)
