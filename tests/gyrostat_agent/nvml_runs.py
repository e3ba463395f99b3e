"""A stand-in for NVIDIA's library, compiled here, its GPUs in a test's hand; and a GpuSource that looks at them."""

import ctypes
import os
import shutil
import subprocess
import threading
import time
from pathlib import Path

import pytest

from gyrostat.wire import Record
from gyrostat_agent.sources.gpu import GpuSource
from gyrostat_rules.inputs import Item, SourceState

LIBRARY = "libnvidia-ml.so.1"
_SOURCE = Path(__file__).parent / "sources" / "nvml" / "stand_in.c"
_PATIENCE_S = 20.0


def compiled(folder: Path, *options: str) -> Path:
    """The stand-in, built in ``folder``; skips where it cannot be."""
    pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler (cc) is here to build the stand-in for NVIDIA's library")
    library = folder / LIBRARY
    flags = ["-O1", "-fPIC", "-shared", f"-Wl,-soname,{LIBRARY}"]
    subprocess.run([compiler, *flags, *options, "-o", str(library), str(_SOURCE)], check=True)
    return library


class StandIn:
    """GPUs as the stand-in shows them: ``set`` changes them under a source that is running."""

    def __init__(self, library: Path, state: Path) -> None:
        self.state = state
        self._values: dict[str, int] = {}
        # The loader knows a library by its soname: the binding, which asks for that name, gets this one.
        self._library = ctypes.CDLL(str(library))
        self._library.stand_in_asked.argtypes = [ctypes.c_char_p, ctypes.c_uint]
        os.environ["STAND_IN_STATE"] = str(state)
        self.set(count=1)

    def set(self, values: dict[str, int] | None = None, **more: int) -> None:
        """Change what is named; the rest stays."""
        self._values |= {**(values or {}), **more}
        self._write()

    def unset(self, *names: str) -> None:
        """Back to what is so of itself."""
        for name in names:
            del self._values[name]
        self._write()

    def asked(self, function: str, gpu: int = 0) -> int:
        """How often this was asked of a GPU, since the tests began."""
        return int(self._library.stand_in_asked(function.encode(), gpu))

    def until_asked(self, function: str, before: int) -> None:
        """Until GPU 0 has been asked this more often than ``before``."""
        ends = time.monotonic() + _PATIENCE_S
        while self.asked(function) <= before:
            assert time.monotonic() < ends, f"nobody asks {function}"
            time.sleep(0.001)

    def times_open(self) -> int:
        """How often the library was opened and not closed."""
        return int(self._library.stand_in_open())

    def _write(self) -> None:
        draft = self.state.with_suffix(".new")
        draft.write_text("".join(f"{key} {value}\n" for key, value in self._values.items()))
        draft.replace(self.state)


class Looking:
    """A source that is looked at second by second."""

    def __init__(self) -> None:
        self._rang = threading.Event()
        self.source = GpuSource(self._rang.set)

    def sample(self, now: float, step: int = -1, segment: int = 0) -> list[Item]:
        """What one sample at ``now`` gives."""
        items = self.source.drain(now, step, segment)
        self.wait()
        return items + self.source.drain(now, step, segment)

    def wait(self) -> None:
        """Until a sample has come in."""
        assert self._rang.wait(_PATIENCE_S), "no sample came"
        self._rang.clear()


def records(items: list[Item]) -> dict[int, Record]:
    """The records among them, by GPU."""
    return {item.rank: item for item in items if isinstance(item, Record)}


def words(items: list[Item]) -> list[tuple[str, str, str]]:
    """What is said of sources."""
    return [tuple(item) for item in items if isinstance(item, SourceState)]  # type: ignore[misc]
