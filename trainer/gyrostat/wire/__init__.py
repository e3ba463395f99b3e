"""What crosses between a training process and the sidecar: frames, records, messages, names, rights.

The one package that both sides import. It holds no state and does no waiting; it says how bytes are laid
out, not when they are written. Golden files under ``tests/gyrostat/golden`` keep every version readable.
"""

from gyrostat.wire.frames import MAJOR, MINOR, Frame, Kind, Role, Scan, encode, scan
from gyrostat.wire.layout import RecordFile, RunDirectory
from gyrostat.wire.messages import (
    Ack,
    Directive,
    Exit,
    Hello,
    KnobChange,
    KnobState,
    MessageError,
    Resume,
)
from gyrostat.wire.records import Column, ExpertLoad, Record, Schema
from gyrostat.wire.rights import RightsError

__all__ = [
    "MAJOR",
    "MINOR",
    "Ack",
    "Column",
    "Directive",
    "Exit",
    "ExpertLoad",
    "Frame",
    "Hello",
    "Kind",
    "KnobChange",
    "KnobState",
    "MessageError",
    "Record",
    "RecordFile",
    "Resume",
    "RightsError",
    "Role",
    "RunDirectory",
    "Scan",
    "Schema",
    "encode",
    "scan",
]
