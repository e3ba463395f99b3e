"""The verifying process: one path a line on standard input, one verdict a line on standard output, both JSON.

Started by ChildVerifier as ``python -m gyrostat_agent.checkpoints.child [idle seconds]``; ends when its input ends,
or when no path came for that long. It gives way: last in the queue for the processor, first in that for the
out-of-memory killer, one thread; a trainer beside it must not notice it.
"""

import json
import os
import resource
import select
import signal
import sys

_NICE = 10
_FIRST_TO_KILL = "1000"


def main(arguments: list[str]) -> int:
    """Verify what is asked for; exit status 0, or 2 where a line is not a path."""
    give_way()
    from gyrostat_agent.checkpoints.layouts.examine import examine  # OMP_NUM_THREADS is set: numpy reads it once

    idle = float(arguments[0]) if arguments else None
    with open(0, "rb", buffering=0, closefd=False) as asked, open(1, "wb", buffering=0, closefd=False) as told:
        while select.select([asked], [], [], idle)[0] and (line := asked.readline()):
            path = _path(line)
            if path is None:
                print(f"not a path as a JSON string: {line[:80]!r}", file=sys.stderr)
                return 2
            try:
                told.write(json.dumps(examine(path)._asdict(), allow_nan=False).encode() + b"\n")
            except BrokenPipeError:
                return 0  # nobody listens any more
    return 0


def _path(line: bytes) -> str | None:
    try:
        path = json.loads(line)
    except ValueError:
        return None
    return path if isinstance(path, str) else None


def give_way() -> None:
    """Be the last in every queue but that of the out-of-memory killer, with one thread; for children of the sidecar."""
    os.nice(_NICE)
    os.environ.update({"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"})
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ctrl-C is for the sidecar, which closes our input
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a SIGBUS is expected; a dump of what is mapped would fill a disk
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write(_FIRST_TO_KILL)
    except OSError:
        pass  # no such thing here; the kernel then judges by size


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
