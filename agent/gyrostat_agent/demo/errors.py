"""What can go wrong with the demonstration.

::

    DemoError             a sentence for the person who started it, and the exit status that goes with it
    └── ChildFailed       a run ended otherwise than its scenario lets it; names its log and shows its end
"""


class DemoError(Exception):
    """It cannot be shown: why, and what to do. ``status`` is the command's exit status."""

    status = 2


class ChildFailed(DemoError):
    """A process of the demonstration failed by itself, not of the fault."""

    status = 1
