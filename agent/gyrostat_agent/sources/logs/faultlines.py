"""Fault lines: the error lines that all trainers share, of CUDA, NCCL, Ray, the kernel, the file system, the engine.

``find`` is asked of every line that a format's reader makes nothing of, so that a line with no fault in it must cost
next to nothing: each row has a needle that any line of its kind contains, and one letter of it is looked for first.
Printed completions may hold any text: what stands behind the word for one, or in a table's cells, is nobody's fault.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from gyrostat_agent.sources.logs import outofmemory
from gyrostat_agent.sources.logs.faultkinds import CHECKS, KINDS, SEVERITIES
from gyrostat_agent.sources.logs.said import Fault
from gyrostat_agent.sources.xids import in_words, is_of_the_node

__all__ = ["CHECKS", "KINDS", "SEVERITIES", "TABLE", "Row", "find"]

_BEFORE, _BEHIND = 1000, 3000  # characters beside the needle that are looked at: a line may be a megabyte
_RANK_BEFORE = 200
_MOST = 400  # characters of what is said of a line
_RANK = re.compile(r"\bRank (\d{1,7})\]")
_SAMPLE = re.compile(
    r"[\u2502\u2503]|\b(?:prompt|response|completion|generation|solution|answer|rollout)s?\b[\"'\]]{0,2} ?[:=\]]", re.I
)
_LETTERS = "KWMOITDASNE"  # few that stand in all needles; the last, as NaN and 1.0E+00 are everywhere, in the fewest
_Say = Callable[[re.Match[str]], tuple[str, str] | None]  # kind and words; None: it is no fault after all


class Row(NamedTuple):
    """One line of the table. ``needle`` is in any line that ``pattern`` finds; ``say``: its words, with the groups of
    the pattern in braces, or what reads kind and words from what was found."""

    kind: str
    needle: str
    pattern: re.Pattern[str]
    say: str | _Say


def find(text: str) -> Fault | None:
    """The fault that a line tells of, if any. ``rank`` is the one that the line names, else 0."""
    if not _may_hold(text):
        return None
    for row in TABLE:
        if (at := text.find(row.needle)) < 0:
            continue
        near = text[max(0, at - _BEFORE) : at + _BEHIND]
        found = row.pattern.search(near)
        if found is None or _SAMPLE.search(near, 0, found.start()):
            continue
        told = row.say(found) if callable(row.say) else (row.kind, _filled(row.say, found))
        rank = _RANK.search(near, max(0, found.start() - _RANK_BEFORE))
        return Fault(told[0], told[1][:_MOST], int(rank[1]) if rank else 0) if told else None
    return None


def _may_hold(text: str) -> bool:
    for letter, needles in _GATES:
        if letter in text:
            for needle in needles:
                if needle in text:
                    return True
    return False


def _filled(say: str, found: re.Match[str]) -> str:
    return say.format(*(group or "?" for group in found.groups()))


# -- what is read from a line more than its kind -----------------------------------------------------------


def _xid(found: re.Match[str]) -> tuple[str, str] | None:
    number, rest = int(found[2]), found.string[found.end() : found.end() + 200]
    if number == 154 and re.search(r"to 0x0+ \(None\)", rest):
        return None  # what was to be done has been done
    pid = re.match(r", ?pid='?(\d{1,9})", rest)
    kind = "xid_node" if is_of_the_node(number) else _XIDS.get(number, "xid_other")
    return kind, f"{in_words(number)} of the GPU at {found[1]}{f', process {pid[1]}' if pid else ''}"


def _watchdog(found: re.Match[str]) -> tuple[str, str]:
    what, number = (re.search(p, found[0]) for p in (r"OpType=(\w{1,40})", r"SeqNum=(\d{1,12})"))
    work = f"{what[1] if what else 'a collective'}{f' number {number[1]}' if number else ''}"
    return "nccl_timeout", f"NCCL's watchdog gave {work} up after {int(found[1]) / 1000:.0f} s"


def _signal(found: re.Match[str]) -> tuple[str, str] | None:
    number, pid = int(found[1]), re.search(r"\bpid: (\d{1,9})|\bPID (\d{1,9})", found.string)
    whose = f"process {pid[1] or pid[2]}" if pid else "a process of the run"
    if number == 9:
        return "process_killed", f"{whose} was killed (SIGKILL): most often the host's memory ran out"
    name = _CRASHES.get(number)
    return ("crashed", f"{whose} died of {name}") if name else None  # a SIGTERM is somebody's wish


_XIDS = {13: "xid_app", 31: "xid_app", 43: "xid_app", 45: "xid_app", 63: "xid_remap", 94: "xid_contained"}
_CRASHES = {4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 11: "SIGSEGV"}
_ODD = "probabilities are NaN, infinite or negative"
_ACTOR = "a Ray actor died; why, an earlier line may say"
_FULL = "a disk is full, or its quota used up: {0}"
_UNWRITTEN = "a checkpoint could not be written"


def _row(kind: str, needle: str, pattern: str, say: str | _Say) -> Row:
    return Row(kind, needle, re.compile(pattern), say)


# The first row that fits counts: what is behind a line (ECC, an assertion) stands before the line's own (the watchdog).
# No gap in a pattern is unbounded.
TABLE: tuple[Row, ...] = (
    _row("ecc", "ECC error", r"[Uu]ncorrectable ECC error", "the GPU met an ECC error that cannot be corrected"),
    _row("", "NVRM: Xid", r"NVRM: Xid \((?:PCI:)?([0-9a-fA-F:.]{1,20})\): (\d{1,4})\b", _xid),
    _row("xid_node", "NVRM:", r"NVRM: .{0,200}fallen off the bus", "a GPU has fallen off the bus"),
    _row("nan", "Assertion", r"Assertion `probability tensor contains", _ODD),
    _row("nan", "Error: prob", r"Error: probability tensor contains", _ODD),
    _row("device_assert", "Assertion", r"\.cuh?:\d{1,6}: .{1,200}Assertion `(.{1,100}?)` failed",
         "a kernel's assertion failed: {0}"),
    _row("device_assert", "CUDA error", r"CUDA error: device-side assert triggered", "a kernel's assertion failed"),
    _row("illegal_access", "CUDA error", r"CUDA error: (an illegal (?:memory access|instruction) was encountered"
         r"|misaligned address|unspecified launch failure)", "a kernel did what it must not: {0}"),
    _row("oom", "CUDA error", r"CUDA error: out of memory", "the GPU's memory ran out"),
    _row("", "CUDA out of memory", r"Error: CUDA out of memory|CUDA out of memory\. Tried", outofmemory.told),
    _row("", "Tried to allocate", r"(?:HIP|NPU|XPU|Allocation on device .{0,40}) ?out of memory\. Tried",
         outofmemory.told),
    _row("host_oom", "Killed process", r"[Oo]ut of memory: Killed process (\d{1,9})(?: \((.{1,40}?)\))?",
         "the kernel killed process {0} ({1}): the host's memory ran out"),
    _row("host_oom", "Task was killed", r"Task was killed due to the node running low on memory",
         "Ray killed a task: the host's memory ran out"),
    _row("host_oom", "Memory on the node", r"Memory on the node .{1,400}? was ([\w.]{1,20} / [\w.]{1,20})",
         "Ray: the host's memory ran out, {0} in use"),
    _row("host_oom", "Workers", r"(\d{1,6}) Workers .{0,40}killed due to memory pressure",
         "Ray killed {0} workers: the host's memory ran out"),
    _row("", "exit", r"exitcode {0,20}: -(\d{1,2})\b", _signal),
    _row("process_killed", "exit", r"\bexit(?:ed)?[ _]?(?:with )?(?:exit |non-zero )?(?:code|status)[ :=]{1,20}137\b",
         "a process ended with status 137: it was killed"),
    _row("", "Signal ", r"Signal (\d{1,2}) \(SIG[A-Z]{1,8}\) received by PID", _signal),
    _row("process_killed", "Killed", r"(?:^|: )line \d{1,7}: {1,20}(\d{1,9}) Killed\b", "process {0} was killed"),
    _row("dataloader", "DataLoader worker", r"DataLoader worker \(pid(?:\(s\))? (\d[\d, ]{0,200})\) "
         r"(exited unexpectedly|is killed by signal: [\w ]{1,40})", "a data loader's worker ({0}) {1}"),
    _row("dataloader", "Error: unable to", r"Error: unable to .{0,80}</torch_", "a loader's shared memory ran out"),
    _row("actor_died", "ActorDiedError", r"ActorDiedError: The actor died", _ACTOR),
    _row("actor_died", "RayActorError", r"RayActorError: The actor died", _ACTOR),
    _row("actor_died", "SYSTEM_ERROR", r"Worker exit type: SYSTEM_ERROR", "a Ray worker went away without a word"),
    _row("actor_died", "Owner's node", r"Owner's node has crashed", "a Ray actor died with its owner's node"),
    _row("", "Watchdog caught", r"Watchdog caught collective operation timeout: .{0,500}? ran for (\d{1,12}) m",
         _watchdog),
    _row("nccl_timeout", "Exception (either", r"detected by watchdog at work: (\d{1,12})"
         r"(?:, last enqueued NCCL work: (\d{1,12}), last completed NCCL work: (\d{1,12}))?",
         "NCCL's watchdog gave work {0} up; enqueued up to {1}, completed up to {2}"),
    _row("nccl_timeout", "To avoid data", r"To avoid data inconsistency, we are taking the entire process down",
         "NCCL's watchdog takes the process down"),
    _row("nccl_timeout", "NCCL's watchdog", r"watchdog got stuck for (\d{1,9}) seconds",
         "NCCL's watchdog was stuck for {0} s"),
    _row("nccl_timeout", "Some NCCL op", r"Some NCCL operations have failed or timed out", "a collective timed out"),
    _row("nccl_error", "NCCL error", r"\bNCCL error\b.{0,300}?[,:] (unhandled \w{1,12} error|remote process exited"
         r"|internal error|invalid usage)", "NCCL failed: {0}"),
    _row("checkpoint_failure", "PytorchStreamWriter", r"PytorchStreamWriter failed writing file (\S{1,200}?):",
         _UNWRITTEN + ", at {0}"),
    _row("checkpoint_failure", "unexpected pos", r"\bunexpected pos \d{1,19} vs \d{1,19}",
         _UNWRITTEN + ": the file took less than it was given"),
    _row("checkpoint_failure", "No space left", r"(No space left on device)", _FULL),
    _row("checkpoint_failure", "Disk quota", r"(Disk quota exceeded)", _FULL),
    _row("checkpoint_failure", "Input/output", r"(?:failed with |\[Errno 5\] )Input/output error",
         "a file could not be written or read: Input/output error"),
    _row("checkpoint_failure", "CheckpointingException", r"\bCheckpointingException\b",
         "a checkpoint could not be saved or loaded"),
    _row("engine", "EngineCore", r"EngineCore (?:encountered a fatal error|failed to start)"
         r"|Error: EngineCore encountered",
         "the inference engine has died; why, an earlier line says"),
    _row("engine_exit", "Engine core proc", r"Engine core proc \S{1,60} died unexpectedly",
         "an inference engine's process is gone; at a run's normal end it says so too"),
    _row("engine_memory", "Sleep mode", r"Sleep mode freed (\S{1,12} \w{1,4}), (\S{1,12} \w{1,4}) memory is still",
         "the rollout engine gave {0} back and holds {1}"),
)  # fmt: skip


def _gates() -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The needles, by a capital in each: to look for one letter costs a fraction of looking for a word."""
    gates: dict[str, dict[str, None]] = {}
    for row in TABLE:
        letter = next((letter for letter in _LETTERS if letter in row.needle), "")
        gates.setdefault(letter, {})[row.needle] = None
    return tuple((letter, tuple(needles)) for letter, needles in gates.items())


_GATES = _gates()
