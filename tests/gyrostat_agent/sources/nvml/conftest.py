"""GPUs for a test, and a source that looks at them."""

import ctypes
from collections.abc import Iterator
from pathlib import Path

import pytest
from nvml_runs import LIBRARY, Looking, StandIn, compiled


@pytest.fixture(scope="session")
def nvml_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stand-in, loaded under the name of NVIDIA's library."""
    library = compiled(tmp_path_factory.mktemp("nvml"))
    ctypes.CDLL(str(library))
    if not hasattr(ctypes.CDLL(LIBRARY), "stand_in_asked"):
        pytest.skip("this process has loaded NVIDIA's own library already")
    return library


@pytest.fixture
def gpus(nvml_library: Path, tmp_path: Path) -> StandIn:
    """One GPU that is well; more with ``set(count=..)``."""
    return StandIn(nvml_library, tmp_path / "gpus")


@pytest.fixture
def looking(gpus: StandIn) -> Iterator[Looking]:
    """A source that has not looked yet."""
    made = Looking()
    yield made
    for name in [name for name in gpus._values if name.endswith(".hang")]:
        gpus.unset(name)
    made.source.close()
