"""This user's folders of run directories: where ``gyrostat run`` makes them, and where the one that is meant is found.

Called by ``run`` and, where no RUN_DIR is given, by every command that looks at a run. Does not promise to find a run
directory that was given by hand: it may lie anywhere.
"""

import contextlib
import os

from gyrostat.wire import RunDirectory
from gyrostat.wire.fields import clean
from gyrostat.wire.layout import RUN_DIR
from gyrostat.wire.rights import check_folder
from gyrostat_agent.errors import SetupError
from gyrostat_agent.rundir import held, network_kind

_SHOWN = 8


def homes() -> list[str]:
    """The folders, first the one for new runs: a local disk, for the journal may grow to what `--journal-bytes` allows.

    On tmpfs it would eat the memory that the trainer's own processes share.
    """
    bases = [os.environ.get("TMPDIR") or "/var/tmp", "/tmp", "/dev/shm"]  # noqa: S108
    usable = [b for b in dict.fromkeys(bases) if os.access(b, os.W_OK) and not network_kind(b)]
    return [os.path.join(base, f"gyrostat-{os.geteuid()}") for base in usable or bases[:1]]


def watched_one() -> str:
    """The one run directory in them that an agent holds now; raises SetupError where there is none, or several."""
    there = [path for home in homes() for path in _inside(home)]
    watched = [path for path in there if held(RunDirectory(path))]
    if len(watched) == 1:
        return watched[0]
    ask = f"give RUN_DIR, or set {RUN_DIR}"
    if watched:
        raise SetupError(f"agents watch {len(watched)} runs: {_listed(watched)}; {ask}")
    past = f"; there are of past runs: {_listed(there)}" if there else ""
    raise SetupError(f"no agent watches a run in {' or '.join(homes())}; {ask}{past}")


def _inside(home: str) -> list[str]:
    """Run directories, the newest first; of a folder that somebody else could have made, none."""
    found: list[tuple[float, str]] = []
    with contextlib.suppress(OSError):
        check_folder(home)
        with os.scandir(home) as inside:
            found = [(e.stat().st_mtime, e.path) for e in inside if e.is_dir(follow_symlinks=False)]
    return [path for _, path in sorted(found, reverse=True)]


def _listed(paths: list[str]) -> str:
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return clean(", ".join(paths[:_SHOWN])) + more
