"""What the tests of the formats of logs share: reading lines, and lines that were cut, mangled or made to be slow."""

import math
import random
import time
from collections.abc import Iterable, Mapping, Sequence

from gyrostat.wire import Record
from gyrostat_agent.sources.logs.format import Format
from gyrostat_agent.sources.logs.lines import Lines, clean
from gyrostat_agent.sources.logs.log import Log
from gyrostat_agent.sources.logs.said import Fault, Note, Said, Step, Told

BITS = (
    "nan",
    "[",
    "]",
    "(",
    ")",
    "{",
    "'",
    ":",
    "|",
    " " * 50,
    "9" * 400,
    "\0",
    "\ud7ff",
    "1e999",
    "-",
    ".",
    "step",
    "\t",
)


def said(form: Format, *lines: str | bytes) -> list[Said]:
    """What a fresh reader says of all of these, as they come from a file."""
    reader, text = form.reader(), Lines()
    data = b"".join(one if isinstance(one, bytes) else one.encode() + b"\n" for one in lines)
    found = [one for line in (*text.feed(data), *text.end()) for one in reader.read(line)]
    return [*found, *reader.end()]


def told(form: Format, *lines: str | bytes) -> list[tuple[int | None, str, dict[str, float]]]:
    """Step, phase and values of each row."""
    return [(one.step, one.phase, dict(one.values)) for one in said(form, *lines) if isinstance(one, Told)]


def records(form: Format, *lines: str) -> list[Record]:
    """What a log of these lines becomes, under canonical names."""
    log = Log(form, "life")
    data = "".join(f"{line}\n" for line in lines).encode()
    return [one for one in (*log.feed(data), *log.end()) if isinstance(one, Record)]


def same(found: Mapping[str, float], expected: Mapping[str, float]) -> bool:
    """True where all values are equal, NaN to NaN."""
    return found.keys() == expected.keys() and all(
        math.isclose(found[name], value, rel_tol=1e-9) or (math.isnan(value) and math.isnan(found[name]))
        for name, value in expected.items()
    )


def is_sound(found: Iterable[Said]) -> bool:
    """True where each thing said can be made a record of."""
    for one in found:
        if isinstance(one, Told):
            assert all(isinstance(name, str) and isinstance(value, float) for name, value in one.values.items())
            assert one.step is None or 0 <= one.step < 1 << 63
        else:
            assert isinstance(one, Step | Fault | Note)
    return True


def prefixes_are_read(form: Format, lines: Sequence[str]) -> bool:
    """True where no beginning of any line raises, alone and after the lines before it."""
    reader = form.reader()
    for line in lines:
        for end in range(len(line) + 1):
            assert is_sound(form.reader().read(clean(line[:end].encode())))
        assert is_sound(reader.read(clean(line[: len(line) // 2].encode())))
        assert is_sound(reader.read(clean(line.encode())))
        form.sign(line)
    return is_sound(reader.end())


def mangled_are_read(form: Format, lines: Sequence[str], rounds: int = 1500) -> bool:
    """True where nothing that is put into the lines, or taken out of them, raises."""
    chance, reader = random.Random(form.name), form.reader()
    for _ in range(rounds):
        data = bytearray(chance.choice(lines).encode())
        for _ in range(chance.randint(1, 6)):
            at = chance.randrange(len(data) + 1)
            match chance.randrange(4):
                case 0:
                    data[at : at + 1] = bytes([chance.randrange(256)])
                case 1:
                    data[at:at] = chance.choice(BITS).encode("utf-8", "replace")
                case 2:
                    del data[at : at + chance.randint(1, 40)]
                case _:
                    data[at:at] = chance.choice(lines).encode()[: chance.randint(1, 200)]
        line = clean(bytes(data))
        assert is_sound(reader.read(line))
        form.sign(line.text)
    return is_sound(reader.end())


def long_lines_are_quick(form: Format, lines: Sequence[str], length: int = 60_000) -> bool:
    """True where a line costs about as much a byte, however long it is and whatever repeats in it."""
    pieces = [*BITS, "a", "1", " ", "| ", "a:", "a: ", "=", "─", *lines, *(line[: len(line) // 2] for line in lines)]
    for piece in pieces:
        for head in ("", lines[0], lines[0][: len(lines[0]) // 2]):
            line = clean((head + piece * (length // len(piece))).encode("utf-8", "replace"))
            start = time.process_time()
            form.reader().read(line)
            form.sign(line.text)
            assert time.process_time() - start < 2.0, (form.name, head, piece)
    return True
