"""Plain: what a run told, made safe to be shown: names and reasons come from whoever wrote them.

Characters that command a terminal, and those that turn the direction of what is written, are spelled.
"""

from gyrostat.wire.fields import clean

_TURNS = {*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x061C, 0x200E, 0x200F}
_SPELLED = {place: f"U+{place:04X}" for place in _TURNS}
_MARKUP = "\\`*[]<>|#~$!"
_MOST = 2000  # characters of one sentence


def plain(said: object) -> str:
    """One line of harmless text."""
    text = clean(str(said)).translate(_SPELLED)
    return text if len(text) <= _MOST else f"{text[:_MOST]} ... ({len(text) - _MOST} characters more)"


def markdown(said: object) -> str:
    """The same where Markdown is read: nothing in it is markup, a table's cell or HTML."""
    text = plain(said)
    out = []
    for place, letter in enumerate(text):
        before, after = text[place - 1 : place], text[place + 1 : place + 2]
        inside = letter == "_" and before.isalnum() and after.isalnum()
        special = letter in _MARKUP or (letter == "_" and not inside) or (letter == "&" and after not in (" ", ""))
        out.append(f"\\{letter}" if special else letter)
    return "".join(out)


def duration(seconds: float | None) -> str:
    """``36 s``, ``12.5 min``, ``3.2 h``, ``2.1 d``; ``-`` where it is not known."""
    if seconds is None:
        return "-"
    for least, size, unit in ((172800.0, 86400.0, "d"), (7200.0, 3600.0, "h"), (120.0, 60.0, "min")):
        if seconds >= least:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 10.0 or seconds == int(seconds) else f"{seconds:.1f} s"
