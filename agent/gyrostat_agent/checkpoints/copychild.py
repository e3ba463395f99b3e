"""The copying process: copies the files of one checkpoint into a draft and proves that what lies there is it.

Started by Copier as ``python -m gyrostat_agent.checkpoints.copychild``; one JSON object on standard input (``source``,
``draft``, ``files``, ``digest``), one sentence on standard output where it did not come to be. Exit status 0: the draft
is on the disk, was read back from there, and has the digest that was verified. It gives way as the verifying child
does, works half of the time at most, and leaves nothing of what it read or wrote in the page cache: a trainer beside it
must not notice it.
"""

import json
import os
import sys
import time
from collections.abc import Iterable

from gyrostat_agent.checkpoints.child import give_way
from gyrostat_agent.checkpoints.layouts.folder import opened_below
from gyrostat_agent.checkpoints.pinfiles import made
from gyrostat_agent.checkpoints.reference import CheckpointError, opened_folder
from gyrostat_rules.inputs import Fit

_CHUNK = 8 << 20


def main() -> int:
    """Copy what is asked for on standard input; exit status 0, or 1 where there is no copy, and why."""
    give_way()
    asked = json.loads(sys.stdin.read())
    try:
        why = copied(asked["source"], asked["draft"], asked["files"], asked["digest"])
    except CheckpointError as error:
        why = str(error)
    except OSError as error:
        why = error.strerror or str(error)
    print(why, end="", flush=True)
    return 1 if why else 0


def copied(source: str, draft: str, files: Iterable[str], digest: str) -> str:
    """Why ``draft`` is no copy of what was verified, or ''; raises OSError, CheckpointError."""
    from gyrostat_agent.checkpoints.layouts.examine import examine  # brings numpy; child.py has limited its threads

    with opened_folder(source) as folder, opened_folder(draft) as target:
        for path in files:
            _copy(folder, target, path)
        os.fsync(target)
    seen = examine(draft)
    if seen.fit != Fit.VERIFIED:
        return f"the copy is {seen.fit}: {seen.why}"
    return "" if seen.digest == digest else "it was written anew meanwhile"


def _copy(folder: int, target: int, path: str) -> None:
    """One file with its time; raises OSError, CheckpointError."""
    above, _, name = path.rpartition("/")
    with opened_below(folder, path) as (source, before), made(target, above) as there:
        copy = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=there)
        try:
            _pour(source, copy)
            os.fsync(copy)
            os.utime(copy, ns=(before.st_atime_ns, before.st_mtime_ns))
            for fd in (source, copy):
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(copy)
        after = os.fstat(source)
        if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
            raise CheckpointError(f"{path} was written anew meanwhile")


def _pour(source: int, copy: int) -> None:
    """All bytes, with a pause after each chunk that is as long as the chunk took."""
    parent = os.getppid()
    while True:
        if os.getppid() != parent:
            raise CheckpointError("the agent has ended")
        began = time.monotonic()
        if not (chunk := os.read(source, _CHUNK)):
            return
        rest = memoryview(chunk)
        while rest:
            rest = rest[os.write(copy, rest) :]
        os.fdatasync(copy)  # else the pause is for the page cache, and the disk is flooded later
        time.sleep(time.monotonic() - began)


if __name__ == "__main__":
    sys.exit(main())
