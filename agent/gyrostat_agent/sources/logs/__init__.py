"""Log sources: what trainers write anyway, read as Records. ``formats`` has a module for each; ``table`` lists them.

The way of a line: bytes -> ``lines`` (one clean Line) -> a format's reader (what it said: ``said``) -> ``gathered``
(rows of one step become one Record, under canonical ``names``) -> the loop, like any other source.
"""
