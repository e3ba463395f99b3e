"""Fault lines: well-known errors are found in any log and named for what they are, and nothing else is."""

import ast
import json
import random
import time
from pathlib import Path

import pytest

from gyrostat_agent.sources.logs.faultlines import CHECKS, KINDS, SEVERITIES, TABLE, find
from gyrostat_agent.sources.logs.lines import Lines
from gyrostat_agent.sources.logs.said import Fault
from gyrostat_rules.pack import Severity

HERE = Path(__file__).parent
CASES = [json.loads(line) for line in (HERE / "data/event_cases.jsonl").read_text("utf-8").splitlines()]
FORMATS = HERE.parents[3] / "agent/gyrostat_agent/sources/logs/formats"

# Kind, the rank that the line names, words of what is said of it, and the line.
_ROWS = [row.split("\t") for row in (HERE / "data/fault_lines.tsv").read_text("utf-8").splitlines()]
LINES = [(line, kind, int(rank), words) for kind, rank, words, line in _ROWS]

PLAIN = [
    "",
    "step:12 - actor/entropy:0.41 - actor/pg_loss:np.float64(nan) - rollout_probs_error:0.1 - perf/mfu:0.137",
    "{'loss': '0.0123', 'grad_norm': 'nan', 'learning_rate': '1e-06', 'reward': '0.5', 'exit_rate': '0.137'}",
    "saved checkpoint; exit 0, 137 steps to go",
    "early exit rate 0.9; exit code 0 after 137 steps",
    "Process 41 has exited normally",
    "[PG ID 0 PG GUID 0 Rank 0] ProcessGroupNCCL initialization options: size: 8, TIMEOUT(ms): 600000",
    "[rank0]: NCCL watchdog thread started, timeout 600 s",
    "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid CUDA out of memory errors",
    "torch.cuda.OutOfMemoryError is caught here and the batch is halved",
    "WARNING: memory usage 0.91 is near the threshold; a task may be killed",
    "Volatile Uncorr. ECC errors: 0",
    "NVRM: The NVIDIA GPU 0000:0a:00.0",
    "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.15",
    "NVRM: Xid (PCI:0000:0a:00): 154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)",
    "ray.exceptions.ActorDiedError: The actor is dead because all references to the actor were removed.",
    "Worker exit type: INTENDED_USER_EXIT Worker exit detail: Worker exits by an user request.",
    "failed (exitcode: 1) local_rank: 0 (pid: 41) of binary: python",
    "failed (exitcode: -15) local_rank: 0 (pid: 41) of binary: python",
    "Signal 15 (SIGTERM) received by PID 41",
    '    raise RuntimeError(f"DataLoader worker (pid(s) {pids_str}) exited unexpectedly") from e',
    "EngineCore waiting for work",
    "class EngineDeadError(Exception):",
    "[response] To fix RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB, halve the batch",
    '{"step": 3, "completion": "RuntimeError: CUDA error: uncorrectable ECC error encountered", "reward": 1.0}',
    "\u2502 Why? \u2502 OSError: [Errno 28] No space left on device \u2502 1.00 \u2502",
]


@pytest.mark.parametrize(("line", "kind", "rank", "words"), LINES, ids=[f"{i}-{k[1]}" for i, k in enumerate(LINES)])
def test_a_known_line_is_named_for_what_it_is(line: str, kind: str, rank: int, words: str) -> None:
    """Kind, rank and what matters in the line come out of it."""
    found = find(line)
    assert found is not None
    assert (found.kind, found.rank) == (kind, rank)
    assert words in found.why


@pytest.mark.parametrize("line", PLAIN, ids=range(len(PLAIN)))
def test_other_lines_are_no_faults(line: str) -> None:
    """Metrics, advice, code in a traceback, a peaceful end, and what a model has written raise no alarm."""
    assert find(line) is None


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["id"]))
def test_public_cases_are_found_in_a_log(case: dict[str, object]) -> None:
    """What broke runs of others is found among the steps of a log; what was harmless there is a note at most."""
    steps = [f"step:{n} - actor/pg_loss:0.{n} - actor/grad_norm:0.3" for n in range(20)]
    lines = case["lines"]
    assert isinstance(lines, list)
    log = Lines()
    data = "\n".join([*steps, *lines, *steps, ""]).encode()
    found = [fault for line in [*log.feed(data), *log.end()] if (fault := find(line.text))]
    assert found and found[0].kind == case["found"]
    assert (SEVERITIES[found[0].kind] == Severity.INFO) == case["healthy"]


def test_the_cases_say_who_was_behind_and_what_else_held_the_card() -> None:
    """The numbers that tell one cause from another reach the person."""
    told = {str(case["id"]): " ".join(f.why for line in case["lines"] if (f := find(line))) for case in CASES}
    assert "number 1580 up after 600 s" in told["F131"] and "completed up to 1579" in told["F131"]
    assert "other processes hold 31.5 GiB of 31.6 GiB" in told["F144"]
    assert "other processes hold 58.3 GiB of 79.19 GiB" in told["F143"]


def test_every_row_of_the_table_has_a_line_here() -> None:
    """A row that no line reaches would be a promise that nobody has tried."""
    reached = {next(row for row in TABLE if row.needle in line and row.pattern.search(line)) for line, *_ in LINES}
    assert reached == set(TABLE)


def test_every_kind_has_a_severity_and_something_to_look_at() -> None:
    """Whoever is told of a fault is told how grave it is and where to look next."""
    assert set(SEVERITIES) == set(CHECKS) == set(KINDS)
    assert {kind for _, kind, _, _ in LINES} | {"loss_scale"} == set(KINDS)
    assert all(checks and all(checks) for checks in CHECKS.values())
    assert set(SEVERITIES.values()) == {Severity.INFO, Severity.WARNING, Severity.CRITICAL}


def test_the_formats_own_faults_are_of_known_kinds() -> None:
    """A kind that only one format knows would have no severity, and break whoever asks for it."""
    used = {
        node.args[0].value
        for path in FORMATS.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == Fault.__name__
        and node.args and isinstance(node.args[0], ast.Constant)
    }  # fmt: skip
    assert used <= set(KINDS)


@pytest.mark.parametrize("line", [line for line, *_ in LINES], ids=range(len(LINES)))
def test_half_a_line_never_raises(line: str) -> None:
    """A log may end, or be cut, anywhere; what is found in a half is of a kind that exists."""
    for end in range(len(line)):
        found = find(line[:end])
        assert found is None or found.kind in KINDS


def test_mutated_lines_never_raise() -> None:
    """Two writers in one line, lost bytes and junk are nobody's stack trace."""
    chance = random.Random(7)
    texts = [line for line, *_ in LINES]
    for _ in range(4000):
        text = chance.choice(texts)
        at = chance.randrange(len(text) + 1)
        junk = "".join(chr(chance.choice((0, 9, 34, 39, 40, 46, 48, 96, 123, 125, 0x2502, 0x1F600))) for _ in range(3))
        found = find(text[:at] + chance.choice((junk, chance.choice(texts), "{0}{x}")) + text[at:])
        assert found is None or (found.kind in KINDS and found.rank >= 0 and len(found.why) <= 400)


@pytest.mark.parametrize("needle", sorted({row.needle for row in TABLE}))
def test_a_line_without_end_costs_no_more_than_its_bytes(needle: str) -> None:
    """A megabyte of one needle after another must not stop the agent."""
    before = time.process_time()
    find((needle + " ") * (1_000_000 // (len(needle) + 1)))
    find(needle + "(" * 1_000_000)
    find("Process 1 has 1.0 GiB memory in use. " * 30_000 + "Error: CUDA out of memory. Tried to allocate")
    assert time.process_time() - before < 1.0


def test_plain_lines_cost_next_to_nothing() -> None:
    """A hundred megabytes without a fault take a few seconds at most, on a slow machine too."""
    lines = [
        " iteration      100/    1000 | consumed samples:  25600 | elapsed time per iteration (ms): 1234.5 | lm loss: "
        "1.234567E+00 | grad norm: 0.123 | number of skipped iterations:   0 | number of nan iterations:   0 |",
        "step:12 - " + " - ".join(f"actor/metric_{n}:0.{n}137" for n in range(40)),
        "{'loss': '0.0123', 'grad_norm': '0.31', 'learning_rate': '9.9e-07', 'reward': 'nan'}",
    ] * 2000
    before = time.process_time()
    assert not any(find(line) for line in lines)
    assert sum(map(len, lines)) / (time.process_time() - before) > 20e6
