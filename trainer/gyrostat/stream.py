"""The stream of one rank's frames: numbered, introduced by Hello and schema, dropped by a rule when room is short.

Called by Telemetry alone, under its lock. A frame that is not written uses up one number, so that the gap a
reader sees in the sequence is what was lost. It may raise what ``struct`` raises; Telemetry counts that.
"""

from gyrostat.columns import Columns
from gyrostat.recordfile import RecordFileWriter
from gyrostat.wire.frames import Kind, pack

_LOADS_UP_TO, _SCALARS_UP_TO = 0.5, 0.98  # share of the cap used beyond which counts, then records, are dropped
_CAP_REACHED = "the cap of the run directory is reached and no sidecar takes records away; start one"


class Stream:
    """Writes frames of one role and rank into its record file, and counts. ``hello`` is a Hello's body."""

    def __init__(self, file: RecordFileWriter, role: int, rank: int, columns: Columns, hello: bytes) -> None:
        self.file, self.columns = file, columns
        self.hello = hello
        self._role, self._rank = role, rank
        self._sequence = 0
        self._said_hello = b""  # the Hello and the schema that this part's reader has
        self._said_schema = -1
        self._part = -1
        self.written = self.dropped = self.loads_dropped = 0
        self.fault = ""

    def record(self, step: int, now: int, segment: int, values: dict[str, float], load: bytes) -> None:
        """Write a record of host numbers and a payload of expert counts, where there is room for them."""
        if self.file.used > _LOADS_UP_TO:
            if load:
                load = b""
                self.loads_dropped += 1
            if self.file.used > _SCALARS_UP_TO:
                self.file.ready()  # looks at the folder now and then: room may have come back
                self.drop(_CAP_REACHED)
                return
        self.write(Kind.RECORD, step, now, segment, self.columns.body(values), load)

    def write(self, kind: int, step: int, now: int, segment: int, body: bytes, load: bytes = b"") -> None:
        """Write one frame, behind the Hello and the schema that its reader still needs."""
        if not self.file.ready():
            self.drop("")
            return
        if self.file.part != self._part:
            self._begin_part()
        before, hello, schema = self._sequence, self.hello, self.columns.schema.number
        try:
            frames = b""
            if self._said_hello is not hello or (self._said_schema != schema and kind == Kind.RECORD):
                frames = self._introduction(kind, now, segment)
            self._sequence += 1
            frames += pack(kind, self._role, self._rank, segment, schema, self._sequence, step, now, body, load)
            done = self.file.write(frames)
        except BaseException:
            self._sequence = before  # whoever catches it counts one frame
            raise
        if not done:
            self._sequence = before
            self.drop("")
            return
        self._said_hello = hello
        if kind == Kind.RECORD:
            self._said_schema = schema
        self.written += 1
        self.fault = ""

    def say_hello(self, now: int, segment: int) -> None:
        """Write Hello alone, where its reader has not got it yet."""
        if not self.file.ready():
            return
        if self.file.part != self._part:
            self._begin_part()
        before, hello = self._sequence, self.hello
        if self._said_hello is not hello:
            if self.file.write(self._introduction(Kind.HELLO, now, segment)):
                self._said_hello = hello
            else:
                self._sequence = before

    def drop(self, fault: str) -> None:
        """Count a frame that is lost and use its number up; '' leaves it to the file to say why."""
        self.dropped += 1
        self._sequence += 1
        self.fault = fault

    def _begin_part(self) -> None:
        """A new part's reader needs Hello and schema again."""
        self._part = self.file.part
        self._said_hello, self._said_schema = b"", -1

    def _introduction(self, kind: int, now: int, segment: int) -> bytes:
        """Hello, and for a record the schema, where this part's reader lacks them."""
        out = b""
        if self._said_hello is not self.hello:
            out += self._preface(Kind.HELLO, now, segment, self.hello)
        if kind == Kind.RECORD and self._said_schema != self.columns.schema.number:
            out += self._preface(Kind.SCHEMA, now, segment, self.columns.schema.encode())
        return out

    def _preface(self, kind: int, now: int, segment: int, body: bytes) -> bytes:
        self._sequence += 1
        schema = self.columns.schema.number
        return pack(kind, self._role, self._rank, segment, schema, self._sequence, -1, now, body)
