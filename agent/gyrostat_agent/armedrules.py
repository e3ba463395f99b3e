"""The rules that a run's agent shows as armed, read from its status file.

For the supervisor, which holds a death back in mode shadow where something may come of it. A module of its own: a
supervisor loads neither rules nor exporters.
"""

import json
import os

from gyrostat.wire import RunDirectory
from gyrostat.wire.fields import MAX_MESSAGE
from gyrostat.wire.rights import read_trusted


def armed(run: RunDirectory) -> tuple[str, ...]:
    """Their names; none where the file cannot be believed, or where nothing is done for a pause or for distrust."""
    try:
        said = json.loads(read_trusted(os.path.join(run.agent, "status.json"), MAX_MESSAGE))
        acts = said["mode"] == "shadow" and not said["observe_only"] and not said["paused"]
        return tuple(str(rule) for rule, _ in said["armed"]) if acts else ()
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ()
