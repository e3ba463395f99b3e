"""The tensors of a torch pickle: what they are called, which bytes of which storage they are, and of what type.

Called by ``torchzip`` with what ``pickled`` has read. torch writes a tensor as a call of a function of torch._utils
with a storage, an offset, sizes and strides; the whole storage is in the file, but what no tensor shows of it need
not be finite, so only the tensors' spans are given. (Of a tensor with gaps the span includes the gaps.)
Not promised: that numbers outside tensors (a learning rate, a best loss of inf) are finite.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from gyrostat_agent.checkpoints.inert import Made, Named, Pairs, Storage, Unreadable

_DEEPEST = 100
_LONGEST = 200  # characters of a name
_LARGEST = 1 << 53

_KINDS = {  # storage of torch -> type as the finiteness pass names it, bytes of an element
    "FloatStorage": ("F32", 4), "DoubleStorage": ("F64", 8), "HalfStorage": ("F16", 2), "BFloat16Storage": ("BF16", 2),
    "ComplexFloatStorage": ("C64", 8), "ComplexDoubleStorage": ("F64", 16),
    "LongStorage": ("I64", 8), "IntStorage": ("I32", 4), "ShortStorage": ("I16", 2), "CharStorage": ("I8", 1),
    "ByteStorage": ("U8", 1), "BoolStorage": ("BOOL", 1), "UntypedStorage": ("", 1),
    "QInt8Storage": ("I8", 1), "QInt32Storage": ("I32", 4), "QUInt8Storage": ("U8", 1),
}  # fmt: skip
_DTYPES = {
    "float32": ("F32", 4), "float64": ("F64", 8), "float16": ("F16", 2), "bfloat16": ("BF16", 2),
    "complex64": ("C64", 8), "complex128": ("F64", 16), "complex32": ("F16", 4),
    "int64": ("I64", 8), "int32": ("I32", 4), "int16": ("I16", 2), "int8": ("I8", 1), "bool": ("BOOL", 1),
    "uint64": ("U64", 8), "uint32": ("U32", 4), "uint16": ("U16", 2), "uint8": ("U8", 1),
    "float8_e4m3fn": ("F8_E4M3", 1), "float8_e5m2": ("F8_E5M2", 1), "float8_e8m0fnu": ("F8_E8M0", 1),
    "float4_e2m1fn_x2": ("U8", 1),  # has no pattern that is not finite
}  # fmt: skip
_WITH_STORAGE = ("_rebuild_tensor", "_rebuild_tensor_v2", "_rebuild_tensor_v3", "_rebuild_qtensor")


class Rebuilt(NamedTuple):
    """A tensor: bytes ``start`` to ``end`` of ``storage``, ``dtype`` as in safetensors ('' where it cannot be checked).

    ``bytes`` is how long the storage is said to be.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    storage: str
    bytes: int
    start: int
    end: int


class Found(NamedTuple):
    """The tensors of a pickle, and why not all of it could be looked into, or ''."""

    tensors: list[Rebuilt]
    unread: str


def rebuilt(root: Any) -> Found:
    """Every tensor that ``root``, a value of ``pickled.read``, leads to; raises ValueError for an impossible one."""
    tensors, unread = list[Rebuilt](), list[str]()
    for name, value in _walked(root):
        if isinstance(value, Storage):
            unread.append(f"storage {value.key} belongs to no tensor")
        elif isinstance(value, Made):
            if value.args and isinstance(value.args[0], Storage):
                tensors.append(_tensor(name, value))
                if not tensors[-1].dtype:
                    unread.append(f"tensor {name} has a type whose numbers cannot be checked here")
            elif why := _opaque(value):
                unread.append(f"{name or 'it'} {why}")
    return Found(tensors, unread[0] if unread else "")


def size_of(dtype: object) -> tuple[str, int]:
    """The type of a ``Named('torch', 'float32')`` and the bytes of an element; ('', 1) where it is not known."""
    return _DTYPES.get(dtype.name, ("", 1)) if isinstance(dtype, Named) and dtype.module == "torch" else ("", 1)


def sizes(value: object) -> tuple[int, ...]:
    """A tuple or a torch.Size of whole numbers from 0; raises ValueError."""
    if isinstance(value, Made) and value.maker.name == "Size" and len(value.args) == 1:
        value = value.args[0]
    if not isinstance(value, (tuple, list)) or len(value) > 64:
        raise ValueError("a tensor whose size is not a tuple of at most 64")
    return tuple(whole(each) for each in value)


def whole(value: object) -> int:
    """``value`` where it is a whole number from 0 to 2**53; raises ValueError."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _LARGEST:
        raise ValueError("a size, stride or offset that is not a whole number of at least 0")
    return value


def _walked(root: Any) -> Iterator[tuple[str, Any]]:
    """Everything that ``root`` holds and that is made or stored, once, in order, with its name."""
    waiting: list[tuple[str, Any, int]] = [("", root, 0)]
    seen = set[int]()
    while waiting:
        name, value, depth = waiting.pop()
        if not isinstance(value, (list, tuple, Made)) or (not isinstance(value, Storage) and id(value) in seen):
            continue
        seen.add(id(value))
        if depth > _DEEPEST:
            raise Unreadable(f"its values are nested more than {_DEEPEST} deep")
        if isinstance(value, (Storage, Made)):
            yield name, value
        inside = [(key, each) for key, each in _inside(value) if isinstance(each, (list, tuple, Made))]
        waiting += [(_joined(name, key), each, depth + 1) for key, each in reversed(inside)]


def _inside(value: Any) -> Iterator[tuple[object, Any]]:
    if isinstance(value, (Named, Storage)):
        return
    if isinstance(value, Pairs):
        for key, each in value:
            yield key, each
            yield None, key
        yield None, value.state
    elif isinstance(value, Made):
        yield from _of_made(value)
    else:
        yield from enumerate(value)


def _of_made(value: Made) -> Iterator[tuple[object, Any]]:
    args = value.args
    if value.maker.name == "_rebuild_from_type_v2" and len(args) == 4 and isinstance(args[2], tuple):
        if isinstance(args[0], Named):
            yield None, Made(args[0], args[2])
        yield None, args[3]
        return
    tensor = bool(args) and isinstance(args[0], Storage)
    for each in (*args[tensor:], value.state, value.pairs, value.elements):
        yield None, each


def _joined(name: str, key: object) -> str:
    if not isinstance(key, (str, int)) or (isinstance(key, int) and key >= _LARGEST):
        return name
    said = str(key)[:_LONGEST]
    return f"{name}.{said}"[-_LONGEST:] if name else said


def _tensor(name: str, made: Made) -> Rebuilt:
    maker, args = made.maker.name, made.args
    if maker not in _WITH_STORAGE or len(args) < 4 or (maker == "_rebuild_tensor_v3" and len(args) < 7):
        raise Unreadable(f"{name or 'a tensor'} is made by {maker[:80]}, which is not known here")
    storage: Storage = args[0]
    kind, width = _KINDS.get(storage.kind, ("", 0))
    size = storage.numel * width
    dtype, width = size_of(args[6]) if maker == "_rebuild_tensor_v3" else (kind, width)
    if not width or (storage.kind == "UntypedStorage" and maker != "_rebuild_tensor_v3"):
        raise Unreadable(f"{name or 'a tensor'} is in a {storage.kind[:40]}, whose numbers cannot be told apart here")
    shape, strides = sizes(args[2]), sizes(args[3])
    first = whole(args[1])
    if len(shape) != len(strides):
        raise ValueError(f"tensor {name} has {len(shape)} sizes and {len(strides)} strides")
    behind = first + 1 + sum((n - 1) * step for n, step in zip(shape, strides, strict=True)) if all(shape) else first
    if behind * width > size:
        raise ValueError(f"tensor {name} ends at byte {behind * width} of a storage of {size}")
    return Rebuilt(name, dtype, shape, storage.key, size, first * width, behind * width)


def _opaque(made: Made) -> str:
    """Why ``made`` may hold numbers that are not looked into, or ''."""
    name, state = made.maker.name, made.state
    if name == "_rebuild_meta_tensor_no_storage":
        return "is a tensor without values"
    if name == "BytesIO" and isinstance(state, tuple) and state and state[0]:
        return "holds bytes that are not looked into"
    if name == "_reconstruct" and made.maker.module.startswith("numpy"):
        kind = state[2].args[:1] if isinstance(state, tuple) and len(state) > 2 and isinstance(state[2], Made) else ()
        if not kind or not isinstance(kind[0], str) or kind[0][:1] not in ("u", "i", "b"):
            return "is an array of numpy's, whose numbers are not looked into"
    return ""
