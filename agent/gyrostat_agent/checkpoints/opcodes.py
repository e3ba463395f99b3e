"""The opcodes of a pickle, protocols 2 to 5, as functions over a machine that imports nothing and calls nothing.

Called by ``pickled``. What each means: CPython's pickletools. Left out are those that neither torch nor DCP writes:
the numbers as text of protocol 0, instances of old classes, extension codes, buffers out of band.
What they raise (ValueError, IndexError, KeyError, struct.error) becomes a sentence there.
"""

import re
import struct
from collections.abc import Callable
from typing import Any

from gyrostat_agent.checkpoints.inert import Made, Named, Pairs, PickleLimits, Storage, Unreadable, named

_NAME = 512  # bytes of a module's or a class's name


class Machine:
    """A pickle machine's stacks, and where it has come to in ``data``."""

    __slots__ = ("at", "data", "limits", "marks", "memo", "stack")

    def __init__(self, data: bytes, limits: PickleLimits) -> None:
        self.data, self.limits, self.at = data, limits, 0
        self.stack: list[Any] = []
        self.marks: list[list[Any]] = []
        self.memo: dict[int, Any] = {}


# -- taking bytes


def _unpacked(machine: Machine, form: struct.Struct) -> Any:
    value = form.unpack_from(machine.data, machine.at)[0]
    machine.at += form.size
    return value


def _taken(machine: Machine, count: int, most: int) -> bytes:
    if count > most:
        raise Unreadable(f"{count} bytes of one value; at most {most} are read")
    end = machine.at + count
    if count < 0 or end > len(machine.data):
        raise ValueError(f"{count} bytes are said to follow, {len(machine.data) - machine.at} do")
    taken, machine.at = machine.data[machine.at : end], end
    return taken


def _line(machine: Machine) -> str:
    end = machine.data.index(b"\n", machine.at, machine.at + _NAME)
    line, machine.at = machine.data[machine.at : end], end + 1
    return line.decode("utf-8")


def _fixed(form: str) -> Callable[[Machine], None]:
    packed = struct.Struct(form)
    return lambda machine: machine.stack.append(_unpacked(machine, packed))


def _long(form: str) -> Callable[[Machine], None]:
    length = struct.Struct(form)

    def put(machine: Machine) -> None:
        taken = _taken(machine, _unpacked(machine, length), machine.limits.number)
        machine.stack.append(int.from_bytes(taken, "little", signed=True))

    return put


def _text(form: str, encoding: str) -> Callable[[Machine], None]:
    length = struct.Struct(form)

    def put(machine: Machine) -> None:
        taken = _taken(machine, _unpacked(machine, length), machine.limits.text)
        machine.stack.append(taken.decode(encoding, "surrogatepass" if encoding == "utf-8" else "strict"))

    return put


def _raw(form: str) -> Callable[[Machine], None]:
    length = struct.Struct(form)
    return lambda machine: machine.stack.append(_taken(machine, _unpacked(machine, length), machine.limits.bytes))


def _constant(value: Any) -> Callable[[Machine], None]:
    return lambda machine: machine.stack.append(value)


def _skipped(form: str) -> Callable[[Machine], None]:
    packed = struct.Struct(form)
    return lambda machine: _unpacked(machine, packed)


def _protocol(machine: Machine) -> None:
    if not 2 <= (version := _unpacked(machine, struct.Struct("B"))) <= 5:
        raise Unreadable(f"protocol {version}; 2 to 5 are read")


# -- building


def _mark(machine: Machine) -> None:
    if len(machine.marks) >= machine.limits.depth:
        raise Unreadable(f"nested more than {machine.limits.depth} deep")
    machine.marks.append(machine.stack)
    machine.stack = []


def _since_mark(machine: Machine) -> list[Any]:
    items, machine.stack = machine.stack, machine.marks.pop()
    return items


def _paired(items: list[Any]) -> Pairs:
    if len(items) % 2:
        raise ValueError("a key without a value")
    pairs = Pairs()
    pairs.extend(zip(items[::2], items[1::2], strict=True))
    return pairs


def _put_pairs(machine: Machine, items: list[Any]) -> None:
    target = machine.stack[-1]
    if isinstance(target, Made):
        target = target.pairs = target.pairs or Pairs()
    if not isinstance(target, Pairs):
        raise ValueError("an item is put into what is no dict")
    target.extend(_paired(items))


def _put_elements(machine: Machine, items: list[Any]) -> None:
    target = machine.stack[-1]
    if isinstance(target, Made):
        target = target.elements = target.elements or []
    if not isinstance(target, list) or isinstance(target, Pairs):
        raise ValueError("an element is put into what is no list or set")
    target.extend(items)


def _gathered(kind: Callable[[list[Any]], Any]) -> Callable[[Machine], None]:
    def put(machine: Machine) -> None:
        items = _since_mark(machine)  # gives back the stack that the value then goes on
        machine.stack.append(kind(items))

    return put


def _set_item(machine: Machine) -> None:
    value, key = machine.stack.pop(), machine.stack.pop()
    _put_pairs(machine, [key, value])


def _append(machine: Machine) -> None:
    value = machine.stack.pop()
    _put_elements(machine, [value])


def _tuple_of(count: int) -> Callable[[Machine], None]:
    def put(machine: Machine) -> None:
        if len(machine.stack) < count:
            raise IndexError
        machine.stack[-count:] = [tuple(machine.stack[-count:])]

    return put


def _remember(machine: Machine, number: int) -> None:
    if len(machine.memo) >= machine.limits.memo:
        raise Unreadable(f"more than {machine.limits.memo} values are remembered")
    machine.memo[number] = machine.stack[-1]


def _put(form: str) -> Callable[[Machine], None]:
    packed = struct.Struct(form)
    return lambda machine: _remember(machine, _unpacked(machine, packed))


def _get(form: str) -> Callable[[Machine], None]:
    packed = struct.Struct(form)
    return lambda machine: machine.stack.append(machine.memo[_unpacked(machine, packed)])


# -- what an unpickler would look up and call


def _global(machine: Machine) -> None:
    module = _line(machine)
    machine.stack.append(named(module, _line(machine)))


def _stack_global(machine: Machine) -> None:
    name, module = machine.stack.pop(), machine.stack.pop()
    machine.stack.append(named(module, name))


def _make(machine: Machine) -> None:
    args, maker = machine.stack.pop(), machine.stack.pop()
    if not isinstance(maker, Named) or not isinstance(args, tuple):
        raise ValueError("what would be called is no global, or its arguments are no tuple")
    ordered = maker.name == "OrderedDict" and not args
    machine.stack.append(Pairs() if ordered else Made(maker, args))


def _make_with_keywords(machine: Machine) -> None:
    keywords, args, maker = machine.stack.pop(), machine.stack.pop(), machine.stack.pop()
    if not isinstance(maker, Named) or not isinstance(args, tuple) or not isinstance(keywords, Pairs):
        raise ValueError("what would be called is no global, or its arguments are none")
    machine.stack.append(Made(maker, (*args, keywords)))


def _build(machine: Machine) -> None:
    state = machine.stack.pop()
    target = machine.stack[-1]
    if not isinstance(target, (Made, Pairs)):
        raise ValueError("a state is given to what has none")
    target.state = state


def _storage(machine: Machine) -> None:
    said = machine.stack.pop()
    if not isinstance(said, tuple) or len(said) < 5 or said[0] != "storage" or not isinstance(said[1], Named):
        raise ValueError("a persistent id that is no storage of torch's")
    _, kind, key, location, numel = said[:5]
    if not isinstance(key, str) or not re.fullmatch("[0-9]{1,18}", key) or not isinstance(location, str):
        raise ValueError("a storage without a plain key and place")
    if isinstance(numel, bool) or not isinstance(numel, int) or not 0 <= numel < 1 << 53:
        raise ValueError("a storage whose number of elements is not a whole number of at least 0")
    machine.stack.append(Storage(kind.name, key, location, numel))


OPCODES: dict[int, tuple[str, Callable[[Machine], Any]]] = {
    0x80: ("PROTO", _protocol), 0x95: ("FRAME", _skipped("<Q")),
    ord("("): ("MARK", _mark), ord("0"): ("POP", lambda m: m.stack.pop()), ord("1"): ("POP_MARK", _since_mark),
    ord("2"): ("DUP", lambda m: m.stack.append(m.stack[-1])),
    ord("N"): ("NONE", _constant(None)), 0x88: ("NEWTRUE", _constant(True)), 0x89: ("NEWFALSE", _constant(False)),
    ord("J"): ("BININT", _fixed("<i")), ord("K"): ("BININT1", _fixed("B")), ord("M"): ("BININT2", _fixed("<H")),
    0x8A: ("LONG1", _long("B")), 0x8B: ("LONG4", _long("<i")), ord("G"): ("BINFLOAT", _fixed(">d")),
    0x8C: ("SHORT_BINUNICODE", _text("B", "utf-8")), ord("X"): ("BINUNICODE", _text("<I", "utf-8")),
    0x8D: ("BINUNICODE8", _text("<Q", "utf-8")),
    ord("U"): ("SHORT_BINSTRING", _text("B", "latin-1")), ord("T"): ("BINSTRING", _text("<i", "latin-1")),
    ord("C"): ("SHORT_BINBYTES", _raw("B")), ord("B"): ("BINBYTES", _raw("<I")),
    0x8E: ("BINBYTES8", _raw("<Q")), 0x96: ("BYTEARRAY8", _raw("<Q")),
    ord("]"): ("EMPTY_LIST", lambda m: m.stack.append([])), ord("a"): ("APPEND", _append),
    ord("e"): ("APPENDS", lambda m: _put_elements(m, _since_mark(m))),
    ord("l"): ("LIST", _gathered(list)),
    ord(")"): ("EMPTY_TUPLE", _constant(())), ord("t"): ("TUPLE", _gathered(tuple)),
    0x85: ("TUPLE1", _tuple_of(1)), 0x86: ("TUPLE2", _tuple_of(2)), 0x87: ("TUPLE3", _tuple_of(3)),
    ord("}"): ("EMPTY_DICT", lambda m: m.stack.append(Pairs())), ord("s"): ("SETITEM", _set_item),
    ord("u"): ("SETITEMS", lambda m: _put_pairs(m, _since_mark(m))),
    ord("d"): ("DICT", _gathered(_paired)),
    0x8F: ("EMPTY_SET", lambda m: m.stack.append([])), 0x90: ("ADDITEMS", lambda m: _put_elements(m, _since_mark(m))),
    0x91: ("FROZENSET", _gathered(list)),
    ord("c"): ("GLOBAL", _global), 0x93: ("STACK_GLOBAL", _stack_global),
    ord("R"): ("REDUCE", _make), 0x81: ("NEWOBJ", _make), 0x92: ("NEWOBJ_EX", _make_with_keywords),
    ord("b"): ("BUILD", _build), ord("Q"): ("BINPERSID", _storage),
    ord("q"): ("BINPUT", _put("B")), ord("r"): ("LONG_BINPUT", _put("<I")),
    0x94: ("MEMOIZE", lambda m: _remember(m, len(m.memo))),
    ord("h"): ("BINGET", _get("B")), ord("j"): ("LONG_BINGET", _get("<I")),
}  # fmt: skip
