"""What a pickle describes, as values that do nothing: a global is a ``Named``, what would be called is a ``Made``.

Made by ``opcodes``, read by ``pickled``, ``rebuilt`` and the layouts. A dict is ``Pairs``, because keys that somebody
else chose can be made to collide, and a tuple of tuples of tuples to be hashed for ever.
The list of globals is that of what torch, DCP, Hugging Face, Megatron and DeepSpeed write; names are compared, and
never looked up, so a name too many on it costs nothing.
"""

import re
from dataclasses import dataclass
from typing import Any, NamedTuple

_CODE = (
    " os posix nt subprocess sys importlib runpy shutil socket pty ctypes code codeop webbrowser pickle _pickle "
    "marshal commands platform timeit pdb bdb cProfile profile trace pip pydoc asyncio multiprocessing threading "
    "signal _posixsubprocess builtins __builtin__ operator _operator linecache tempfile glob imp zipimport "
)
_CLASS = r"_*[A-Z]\w*"
_OWN = ("megatron.", "deepspeed.", "transformers.", "trl.", "accelerate.", "peft.", "transformer_engine.")
_DISTRIBUTED = ("torch.distributed.tensor", "torch.distributed._tensor", "torch.distributed.device_mesh")
_LISTED = {
    module: re.compile(names)
    for modules, names in {
        "torch": r"\w+Storage|Size|Tensor|device|layout|dtype|(b?float|complex|bits|q?u?int)\w*|bool|half|double"
        r"|strided|sparse_\w+|per_\w+_affine|\w+_format",
        "torch._utils": r"_rebuild_\w+",
        "torch._tensor": "_rebuild_from_type_v2",
        "torch.storage": r"\w+Storage",
        "torch.serialization": "_get_layout",
        "torch.nn.parameter": _CLASS,
        "torch.distributed.checkpoint.metadata": _CLASS,
        "torch.distributed.checkpoint.filesystem": "_StorageInfo",
        "collections": "OrderedDict|defaultdict|deque|Counter",
        "builtins __builtin__": "set|frozenset|list|dict|tuple|int|float|bool|complex|str|bytes|bytearray|slice|range"
        "|object|getattr",  # getattr: Python 3.11 wrote enumerations so
        "_codecs": "encode",
        "_io": "BytesIO",
        "deepspeed.utils.tensor_fragment": "fragment_address",
        "copyreg copy_reg": "_reconstructor|__newobj__",
        "argparse": "Namespace",
        "types": "SimpleNamespace",
        "pathlib pathlib._local": r"\w*Path",
        "datetime": "datetime|date|time|timedelta|timezone",
        "uuid": "UUID",
        "numpy": r"dtype|ndarray|bool_?|u?int\d+|float\d+",
        "numpy.core.multiarray numpy._core.multiarray": "_reconstruct|scalar",
        "numpy.core.numeric numpy._core.numeric": "_frombuffer",
        "numpy.random._pickle": r"__\w+_ctor",
        "numpy.random._mt19937 numpy.random._pcg64 numpy.random._philox numpy.random._sfc64": _CLASS,
    }.items()
    for module in modules.split()
}
_ANY_CLASS = re.compile(_CLASS)


class Unreadable(ValueError):
    """What this reader does not know, or will not read to its end; it may be good."""


class PickleLimits(NamedTuple):
    """How much of a pickle is read before it is called absurd."""

    bytes: int = 64 << 20
    opcodes: int = 10_000_000
    memo: int = 2_000_000
    depth: int = 500  # marks that are open at once
    text: int = 1 << 20  # bytes of one string
    number: int = 1024  # bytes of one whole number


class Named(NamedTuple):
    """A global, by its names; whatever it is, it was not looked up."""

    module: str
    name: str


class Storage(NamedTuple):
    """A persistent id as torch writes it: ``numel`` elements of ``kind`` ('FloatStorage') in the record ``key``."""

    kind: str
    key: str
    location: str
    numel: int


class Pairs(list[Any]):
    """A dict as its (key, value) pairs, in order; ``state`` is what a subclass of dict carries beside them."""

    __slots__ = ("state",)

    def __init__(self) -> None:
        super().__init__()
        self.state: Any = None


@dataclass(slots=True, eq=False, repr=False)
class Made:
    """What would be made by calling ``maker`` with ``args``; ``state``, ``pairs`` and ``elements`` come to it later."""

    maker: Named
    args: tuple[Any, ...]
    state: Any = None
    pairs: Pairs | None = None
    elements: list[Any] | None = None


def named(module: object, name: object) -> Named:
    """The global of these names where it is on the list; raises ValueError, or Unreadable where it may be good."""
    if not isinstance(module, str) or not isinstance(name, str):
        raise ValueError("a global is not named by two strings")
    listed = _LISTED.get(module)
    if listed and listed.fullmatch(name):
        return Named(module, name)
    if module.startswith((*_OWN, *_DISTRIBUTED)) and _ANY_CLASS.fullmatch(name):
        return Named(module, name)
    said = f"{module}.{name}"[:80].encode("ascii", "backslashreplace").decode()
    if f" {module.partition('.')[0]} " in _CODE:
        raise ValueError(f"it names {said}, which would run when it is loaded: a checkpoint has no use for it")
    raise Unreadable(f"it names {said}, which is not on the list of what is read without unpickling")
