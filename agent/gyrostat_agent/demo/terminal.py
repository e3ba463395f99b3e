"""Terminal: what the demonstration may do with the stream it prints to.

Colours and a live footer on a terminal; plain lines into a pipe or a file, with ``--no-color``, NO_COLOR or
TERM=dumb: no control code at all, so that a log stays a log.
"""

import io
import os
import sys
import textwrap
from collections.abc import Mapping
from typing import TextIO

from rich.console import Console
from rich.text import Text

_WIDEST = 100


def open_console(no_color: bool = False, stream: TextIO | None = None) -> Console:
    """The console on ``stream``, stdout where none is given."""
    stream = stream or sys.stdout
    if isinstance(stream, io.TextIOWrapper):  # a path in Chinese must not end the demonstration on an ASCII terminal
        stream.reconfigure(errors="backslashreplace")
    if no_color or not stream.isatty() or _declines(os.environ):
        return Console(file=stream, force_terminal=False, color_system=None, highlight=False, markup=False, emoji=False)
    return Console(file=stream, highlight=False, markup=False, emoji=False)


def is_live(console: Console) -> bool:
    """True where lines may be drawn over."""
    return console.is_terminal and console.color_system is not None


def width_of(console: Console) -> int:
    """Columns to fill: the terminal's, within what is readable."""
    return min(_WIDEST, console.width)


def wrapped(text: str, style: str, width: int, first: str = "", rest: str = "") -> Text:
    """``text`` folded at ``width``, its lines led by ``first`` and then ``rest``."""
    lines = textwrap.wrap(
        text, width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False, break_long_words=True
    )
    return Text("\n".join(lines), style=style)


def _declines(environment: Mapping[str, str]) -> bool:
    return bool(environment.get("NO_COLOR")) or environment.get("TERM") == "dumb"
