"""The layouts in which trainers write checkpoints: found, complete?, and how each file is read without unpickling.

One module a layout; ``LAYOUTS`` is the table, in the order in which a folder is tried. ``contents`` has the words
they share and the protocol, ``folder`` what they open files with, ``examine`` the verdict; numpy is imported there
alone, so it is not re-exported. Called by the child; ``find`` also by whoever watches a root.
"""

import os
from fnmatch import fnmatchcase

from gyrostat_agent.checkpoints.layouts import dcp, deepspeed, huggingface, megatron, reference
from gyrostat_agent.checkpoints.layouts.contents import Contents, File, How, Layout, Slice

__all__ = ["LAYOUTS", "Contents", "File", "How", "Layout", "Slice", "of"]

LAYOUTS: tuple[Layout, ...] = (reference, huggingface, deepspeed, megatron, dcp)


def of(path: str) -> Layout | None:
    """The layout of the folder at ``path``: by its name and what is in it, else by its name alone; None if no one's.

    Where nothing in it is a sign, it is half-written or being deleted, and its layout can say of what.
    """
    named = [layout for layout in LAYOUTS if layout.matches(os.path.basename(os.path.abspath(path))) is not None]
    try:
        names = os.listdir(path)
    except (OSError, ValueError):
        names = []
    signed = (layout for layout in named if any(fnmatchcase(name, sign) for sign in layout.signs for name in names))
    return next(signed, named[0] if named else None)
