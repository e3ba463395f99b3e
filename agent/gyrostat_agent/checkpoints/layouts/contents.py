"""What a checkpoint consists of, in whatever layout it was written: files, how each is read, what must be there.

Made by a layout's ``read``, judged by ``lacking`` (presence and sizes, nothing of the files is read) and by
``examine`` (every byte).
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from gyrostat_agent.checkpoints.reference import Stamp
from gyrostat_rules.inputs import UNTOLD

_SHRUNK = 0.9  # of the smallest sibling: a model's size does not change within a run


class How:
    """How a file is read."""

    SAFETENSORS = "safetensors"
    TORCHZIP = "torchzip"
    DCP = "dcp"  # streams of torch.save one behind the other, at the places that .metadata names
    JSON = "json"
    PLAIN = "plain"  # no tensors in it: its digest is all that is asked
    OPAQUE = "opaque"


class Slice(NamedTuple):
    """A stretch of a file in which one item lies. ``shape`` is None where the item is no tensor.

    ``unread`` says why it cannot be read, or is ''.
    """

    name: str
    start: int
    end: int
    dtype: str = ""
    shape: tuple[int, ...] | None = None
    unread: str = ""


class File(NamedTuple):
    """A file: its size, how it is read, and whether weights or optimizer state are in it.

    ``tensors`` are the names that an index says are in it, None where none does.
    """

    bytes: int
    how: str = How.PLAIN
    weights: bool = False
    slices: tuple[Slice, ...] = ()
    tensors: frozenset[str] | None = None


class Contents(NamedTuple):
    """A checkpoint as its files tell it. ``expected`` has files that must be there, and the least bytes of each.

    ``named`` is the step of the folder's name, ``step`` that of the files; ``saved_at`` is Unix seconds;
    ``data_cursor`` counts samples, -1 where it is not said; ``tag`` is the format's version. ``problems`` were found
    while it was read. Paths are relative to the folder.
    """

    named: int
    step: int
    saved_at: float
    files: Mapping[str, File]
    expected: Mapping[str, int]
    segment: int = UNTOLD
    data_cursor: int = -1
    knobs: Mapping[str, float] = {}
    tag: str = ""
    problems: tuple[str, ...] = ()


class Layout(Protocol):
    """One way to write a checkpoint; each is a module of this package."""

    @property
    def name(self) -> str:
        """As people call it."""

    @property
    def signs(self) -> tuple[str, ...]:
        """Patterns of file names of which a folder in this layout has at least one."""

    def matches(self, folder_name: str) -> int | None:
        """The step that a folder of this name is of; None where the name is another layout's."""

    def find(self, root: str) -> dict[str, Stamp]:
        """The finished checkpoints under ``root``, by path; raises OSError where it cannot be listed."""

    def read(self, folder: int, folder_name: str) -> Contents:
        """What is in the folder with this descriptor; raises CheckpointError. Maps files: call it in the child."""

    def complete(self, contents: Contents, siblings: Sequence[Mapping[str, int]]) -> list[str]:
        """What is missing or too short, a sentence each. ``siblings`` are sizes by path of others of this run."""


def lacking(contents: Contents, siblings: Sequence[Mapping[str, int]]) -> list[str]:
    """What is wrong with presence and sizes, a sentence each: against what is expected, and against ``siblings``."""
    problems = list(contents.problems)
    if contents.step != contents.named:
        problems.append(f"its name says step {contents.named}, its files say step {contents.step}")
    for name, least in sorted(contents.expected.items()):
        file = contents.files.get(name)
        if file is None:
            problems.append(f"{name} is missing")
        elif file.bytes < least:
            problems.append(f"{name} is truncated: {file.bytes} of at least {least} bytes")
    empty = (f"{name} is empty" for name, file in sorted(contents.files.items()) if file.weights and not file.bytes)
    problems += empty
    if not problems and not any(file.weights for file in contents.files.values()):
        problems.append("it holds no weights: there is nothing to go back to")
    return problems + list(_shrunk(contents, siblings))


def _shrunk(contents: Contents, siblings: Sequence[Mapping[str, int]]) -> list[str]:
    """Files that all the others have and this one lacks, or has much shorter; two others at least must agree.

    Where ranks are as many as files, other ranks may have been there: only the same set of weight files is compared.
    """
    if len(siblings) < 2:
        return []
    everywhere = set.intersection(*(set(sizes) for sizes in siblings))
    single = [name for name in sorted(everywhere - contents.files.keys()) if not any(c.isdigit() for c in name)]
    problems = [f"{name} is missing; the {len(siblings)} others beside it have it" for name in single]
    for name, file in sorted(contents.files.items()):
        least = min((sizes[name] for sizes in siblings), default=0) if name in everywhere else 0
        if file.weights and file.how in (How.SAFETENSORS, How.OPAQUE) and file.bytes < _SHRUNK * least:
            problems.append(f"{name} has {file.bytes} bytes, in the others beside it at least {least}")
    return problems
