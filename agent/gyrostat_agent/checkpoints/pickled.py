"""A pickle read without unpickling: opcodes become plain and inert values; nothing is imported, nothing is called.

Called by ``torchzip`` for ``data.pkl`` and by the DCP layout for ``.metadata``, in the child.
Not promised: that the values make sense. A list may hold itself; walk with what was seen in hand.

::

    ValueError            no pickle of a checkpoint: damaged, or made to run something when it is loaded
      Unreadable          may be a good one, but it is not known here, or larger than is read
"""

import struct
from typing import Any

from gyrostat_agent.checkpoints.inert import Made, Named, Pairs, PickleLimits, Storage, Unreadable
from gyrostat_agent.checkpoints.opcodes import OPCODES, Machine

__all__ = ["Made", "Named", "Pairs", "PickleLimits", "Storage", "Unreadable", "field_of", "read", "whole_of"]

_STOP = ord(".")


def read(data: bytes, limits: PickleLimits) -> Any:
    """The value that ``data``, one pickle, describes; raises ValueError with the opcode and its offset."""
    if len(data) > limits.bytes:
        raise Unreadable(f"a pickle of {len(data)} bytes; at most {limits.bytes} are read")
    machine = Machine(data, limits)
    opcodes, begin, opcode = OPCODES, 0, -1
    try:
        for _ in range(limits.opcodes):
            begin, opcode = machine.at, data[machine.at]
            machine.at += 1
            if opcode == _STOP:
                return _result(machine)
            opcodes[opcode][1](machine)
    except Unreadable as error:
        raise Unreadable(_said(opcode, begin, str(error))) from None
    except (IndexError, struct.error):
        raise ValueError(_said(opcode, begin, "the pickle ends there, or takes what was not put")) from None
    except KeyError:
        raise ValueError(_said(opcode, begin, "not an opcode, or nothing is remembered under that number")) from None
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(_said(opcode, begin, str(error)[:120])) from None
    raise Unreadable(f"a pickle of more than {limits.opcodes} opcodes")


def field_of(value: Any, name: str) -> Any:
    """What ``value``, Pairs or a Made with such a state, has under ``name``; None where it has nothing."""
    pairs = value.state if isinstance(value, Made) else value
    if not isinstance(pairs, Pairs):
        return None
    return next((found for key, found in reversed(pairs) if isinstance(key, str) and key == name), None)


def whole_of(value: Any, name: str) -> int | None:
    """What ``value`` has under ``name`` where it is a whole number from 0 to 2**53, else None."""
    found = field_of(value, name)
    return found if isinstance(found, int) and not isinstance(found, bool) and 0 <= found <= 1 << 53 else None


def _said(opcode: int, begin: int, why: str) -> str:
    name = OPCODES[opcode][0] if opcode in OPCODES else "STOP" if opcode == _STOP else f"{opcode:#04x}"
    return f"opcode {name} at byte {begin} of the pickle: {why}"


def _result(machine: Machine) -> Any:
    if machine.at != len(machine.data) or machine.marks or len(machine.stack) != 1:
        raise ValueError("the pickle does not end there with one value")
    return machine.stack[0]
