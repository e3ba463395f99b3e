"""Logs of RL trainers in tests: lines through a format's reader, whole logs as records, and damaged lines."""

import math
import random
from collections.abc import Iterable, Iterator
from typing import Any

from gyrostat.wire import Record
from gyrostat_agent.sources.logs.format import Format
from gyrostat_agent.sources.logs.gathered import Gathered
from gyrostat_agent.sources.logs.lines import Lines, clean
from gyrostat_agent.sources.logs.names import Names
from gyrostat_agent.sources.logs.said import Fault, Note, Said, Step, Told

NAN = "nan"  # what NaN is shown as, for it equals nothing


def shown(values: dict[str, float]) -> dict[str, Any]:
    """Values that can be compared."""
    return {name: NAN if math.isnan(value) else value for name, value in values.items()}


def said(form: Format, *lines: str) -> list[Said]:
    """What a fresh reader says of these lines; what says nothing but that it was understood is left out."""
    reader = form.reader()
    found = [one for line in lines for one in reader.read(clean(line.encode()))] + [*reader.end()]
    return [one for one in found if not (isinstance(one, Told) and not one.values)]


def told(form: Format, *lines: str) -> list[tuple[int | None, str, dict[str, Any]]]:
    """Step, phase and values of each row that these lines tell."""
    return [(one.step, one.phase, shown(dict(one.values))) for one in said(form, *lines) if isinstance(one, Told)]


def read(form: Format, text: str) -> list[Record | Fault | Note]:
    """A whole log."""
    gathered, reader, lines = Gathered(Names(form.aliases), "life"), form.reader(), Lines()
    found: list[Record | Fault | Note] = []
    for line in [*lines.feed(text.encode()), *lines.end()]:
        found += gathered.take(reader.read(line))
    return [*found, *gathered.take(reader.end()), *gathered.flush()]


def records(form: Format, text: str) -> list[tuple[int, dict[str, Any]]]:
    """Step and values of each record of a whole log."""
    return [(one.step, shown(dict(one.values))) for one in read(form, text) if isinstance(one, Record)]


def segments(form: Format, text: str) -> list[tuple[int, int]]:
    """Segment and step of each record of a whole log."""
    return [(one.segment, one.step) for one in read(form, text) if isinstance(one, Record)]


def damaged(lines: Iterable[str], seed: int, times: int) -> Iterator[bytes]:
    """Lines with bytes changed, cut out, doubled and put into one another."""
    draw = random.Random(seed)
    whole = [line.encode() for line in lines]
    for _ in range(times):
        data = bytearray(draw.choice(whole))
        for _ in range(draw.randint(1, 8)):
            at = draw.randrange(len(data) + 1)
            kind = draw.randrange(4)
            if kind == 0:
                data[at : at + 1] = bytes([draw.randrange(256)])
            elif kind == 1:
                del data[at : at + draw.randint(1, 20)]
            elif kind == 2:
                data[at:at] = data[at : at + draw.randint(1, 30)] * draw.randint(1, 4)
            else:
                data[at:at] = draw.choice(whole)[: draw.randint(1, 80)]
        yield bytes(data)


def survives(form: Format, lines: Iterable[str], seed: int = 5, times: int = 1500) -> None:
    """Every prefix and many damaged lines, all through one reader: nothing raises, all that is said is well formed."""
    lines = list(lines)
    reader = form.reader()
    prefixes = (line[:end].encode() for line in lines for end in range(len(line)))
    for data in (*prefixes, *damaged(lines, seed, times)):
        line = clean(data)
        form.sign(line.text)
        for one in reader.read(line):
            _well_formed(one)
    for one in reader.end():
        _well_formed(one)


def _well_formed(one: Said) -> None:
    if isinstance(one, Told):
        assert all(isinstance(name, str) and isinstance(value, float) for name, value in one.values.items())
        assert one.step is None or (isinstance(one.step, int) and one.step >= 0)
    else:
        assert isinstance(one, (Step, Fault, Note))
