"""What the SDK's tests read and ring: a run directory seen from the sidecar's side, with the wire's own readers."""

import itertools
import os
import struct
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

from gyrostat import Telemetry
from gyrostat.wire import Ack, Directive, Frame, Kind, Record, RecordFile, RunDirectory, Schema, scan
from gyrostat.wire.records import decode_record


def parts(run: Path) -> list[Path]:
    """The record files of a run, by incarnation and part."""
    names = [f for p in (run / "records").iterdir() if (f := RecordFile.parse(p.name))]
    return [run / "records" / f.name for f in sorted(names, key=lambda f: (f.rank, f.incarnation, f.part))]


def frames(run: Path) -> list[Frame]:
    """All frames of a run; every byte of its files belongs to one."""
    found: list[Frame] = []
    for part in parts(run):
        data = part.read_bytes()
        read = scan(data)
        assert (read.consumed, read.damaged, read.foreign) == (len(data), 0, 0), part.name
        found += read.frames
    return found


def records(run: Path) -> list[Record]:
    """All records of a run, read by the schemas that stand before them in the same file."""
    found: list[Record] = []
    for part in parts(run):
        schemas: dict[int, Schema] = {}
        for frame in scan(part.read_bytes()).frames:
            if frame.kind == Kind.SCHEMA:
                schemas[frame.schema] = Schema.decode(frame.schema, frame.body)
            elif frame.kind == Kind.RECORD:
                schema = schemas[frame.schema]
                found.append(decode_record(frame, schema, schema.layout(), "i"))
    return found


def acks(run: Path) -> list[Ack]:
    """All answers of a run."""
    return [Ack.decode(f.body) for f in frames(run) if f.kind == Kind.ACK]


def missing(found: list[Frame]) -> int:
    """How many sequence numbers a reader misses between the first and the last frame."""
    numbers = [f.sequence for f in found]
    assert numbers == sorted(set(numbers))
    return sum(b - a - 1 for a, b in itertools.pairwise(numbers))


def directive(telemetry: Telemetry, number: int, /, **changed: Any) -> Directive:
    """A directive that this telemetry's process would obey, but for what is ``changed``."""
    plain = Directive(
        number, telemetry.run, telemetry.role, telemetry.incarnation, 0, f"a-{number}", time.time() + 3600
    )
    return plain._replace(**changed)


def lay(run: Path, number: int, body: bytes) -> Path:
    """Put bytes where directive ``number`` is looked for."""
    path = Path(RunDirectory(str(run)).directive(number))
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.write_bytes(body)
    path.chmod(0o600)
    return path


def ring(run: Path, number: int) -> None:
    """Leave ``number`` in the bell."""
    bell = Path(RunDirectory(str(run)).bell)
    bell.parent.mkdir(mode=0o700, exist_ok=True)
    fd = os.open(bell, os.O_RDWR | os.O_CREAT, 0o600)
    os.pwrite(fd, struct.pack("<Q", number), 0)
    os.close(fd)


def send(run: Path, message: Directive) -> None:
    """Lay a directive and ring for it."""
    lay(run, message.number, message.encode())
    ring(run, message.number)


def python(script: str, *before: str) -> str:
    """What another process prints that runs ``script``, behind the words ``before``; its error is this test's."""
    command = [*before, sys.executable, "-c", textwrap.dedent(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout
