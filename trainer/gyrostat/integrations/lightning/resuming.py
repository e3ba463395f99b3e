"""Resuming: what the sidecar wants a starting process to load, asked before there is a trainer to control."""

import os
import time

from gyrostat.wire.layout import RUN_DIR, RUN_NAME, RunDirectory
from gyrostat.wire.messages import MAX_MESSAGE, Resume
from gyrostat.wire.rights import check_folder, read_trusted


def wanted(last_applied: int) -> Resume | None:
    """What ``Control.resume`` will answer for; None where nothing is asked, or was done already. Never raises.

    Lightning loads before it calls any callback that knows its rank, so this is read without one.
    """
    path = os.path.abspath(os.environ.get(RUN_DIR, ""))
    if not os.environ.get(RUN_DIR):
        return None
    directory, run = RunDirectory(path), os.environ.get(RUN_NAME, "") or os.path.basename(path)
    try:
        check_folder(directory.directives)
        resume = Resume.decode(read_trusted(directory.resume, MAX_MESSAGE))
    except (OSError, ValueError):
        return None
    return resume if resume.run == run and resume.number > last_applied and time.time() < resume.expires_at else None
