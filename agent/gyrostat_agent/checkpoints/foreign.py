"""Foreign: checkpoints of other trainers as the loop sees them: found by name and mark, told from later ones by stat.

What is in them is read in the child alone. They bear no digest of their own, so that what was verified is known again
by the sizes and times of all its files; a trainer writes them anew in place, and says nothing of its segments.
"""

from collections.abc import Mapping
from functools import lru_cache

from gyrostat_agent.checkpoints.layouts import LAYOUTS, of
from gyrostat_agent.checkpoints.layouts import reference as own
from gyrostat_agent.checkpoints.layouts.folder import Listed, listing
from gyrostat_agent.checkpoints.reference import CheckpointError, Stamp, opened_folder


def find(root: str) -> dict[str, Stamp]:
    """The finished ones under ``root``, by path; raises OSError where it cannot be listed."""
    found: dict[str, Stamp] = {}
    for layout in LAYOUTS:
        if layout.name != own.name:
            theirs = layout.find(root).items()
            found.update((p, stamp) for p, stamp in theirs if p not in found and _layout_of(p, stamp) == layout.name)
    return found


@lru_cache(maxsize=1024)
def _layout_of(path: str, stamp: Stamp) -> str:
    """Asked every second of every checkpoint: a folder is listed again only when its mark is another."""
    layout = of(path)
    return layout.name if layout else ""


def files(path: str) -> Mapping[str, Listed] | None:
    """Sizes and times of the files of the one at ``path``; None where it cannot be listed."""
    try:
        with opened_folder(path) as folder:
            return listing(folder)
    except (CheckpointError, OSError):
        return None
