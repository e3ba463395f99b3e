import contextlib
import os
import pickle
import random
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from layout_folders import dcp, torch

from gyrostat_agent.checkpoints.layouts.examine import examine


def told(folder: Path) -> Any:
    return pickle.loads((folder / ".metadata").read_bytes())


def tell(folder: Path, metadata: Any) -> None:
    (folder / ".metadata").write_bytes(pickle.dumps(metadata))


def place(metadata: Any, name: str) -> Any:
    return next(value for key, value in metadata.storage_data.items() if key.fqn == name)


def forget(metadata: Any) -> None:
    metadata.storage_data = {
        key: value for key, value in metadata.storage_data.items() if key.fqn != "model.head.weight"
    }


def wrong_size(metadata: Any) -> None:
    entry = metadata.state_dict_metadata["model.head.weight"]
    entry.size = entry.chunks[0].sizes = torch.Size([20, 32])


def wrong_type(metadata: Any) -> None:
    metadata.state_dict_metadata["model.head.weight"].properties.dtype = torch.bfloat16


def half(metadata: Any) -> None:
    metadata.state_dict_metadata["model.head.weight"].size = torch.Size([80, 16])


def exchanged(metadata: Any) -> None:
    one, other = place(metadata, "model.head.weight"), place(metadata, "model.embed.weight")
    for field in ("relative_path", "offset", "length"):
        first, second = getattr(one, field), getattr(other, field)
        setattr(one, field, second)
        setattr(other, field, first)


@pytest.mark.parametrize(
    ("lie", "why"),
    [
        pytest.param(
            lambda m: setattr(place(m, "step"), "relative_path", "../x"), "'../x', which is no file", id="out"
        ),
        pytest.param(
            lambda m: setattr(place(m, "step"), "relative_path", "/etc/passwd"), "which is no file", id="root"
        ),
        pytest.param(lambda m: setattr(place(m, "step"), "offset", -5), "not a whole number", id="negative"),
        pytest.param(lambda m: setattr(place(m, "model.head.weight"), "length", 10**9), "is truncated", id="long"),
        pytest.param(
            lambda m: setattr(place(m, "model.head.weight"), "offset", 0), "lies over another|ends|end", id="over"
        ),
        pytest.param(
            lambda m: setattr(place(m, "step"), "relative_path", "__9_9.distcp"), "9.distcp is missing", id="file"
        ),
        pytest.param(forget, "model.head.weight is in no file", id="forgotten"),
        pytest.param(wrong_size, r"\(40, 16\).* is there, .*\(20, 32\).* is what .metadata says", id="size"),
        pytest.param(wrong_type, "'F32', .* is there, .*'BF16'", id="type"),
        pytest.param(half, "the pieces of model.head.weight have 640 values, it has 1280", id="half"),
        pytest.param(exchanged, "is what .metadata says", id="exchanged"),
    ],
)
def test_metadata_that_lies(tmp_path: Path, lie: Callable[[Any], None], why: str) -> None:
    """What .metadata says of names, places, sizes and types is compared with what lies in the files."""
    folder = dcp(tmp_path, 20)
    metadata = told(folder)
    tell(folder, metadata)
    assert examine(str(folder)).fit == "verified"
    lie(metadata)
    tell(folder, metadata)
    found = examine(str(folder))
    assert found.fit == "unfit"
    assert re.search(why, found.why), found.why


def test_metadata_of_any_bytes(tmp_path: Path) -> None:
    """Whatever stands in .metadata, the verdict is a sentence, and is never better than the good one's."""
    folder = dcp(tmp_path, 20)
    body, good = (folder / ".metadata").read_bytes(), examine(str(folder)).digest
    for turn in range(150):
        dice, bent = random.Random(turn), bytearray(body)
        for _ in range(dice.randrange(1, 6)):
            bent[dice.randrange(len(bent))] = dice.choice(body)
        (folder / ".metadata").write_bytes(bent)
        found = examine(str(folder))
        assert found.fit != "verified" or bytes(bent) == body or found.digest != good
        assert found.why or found.fit == "verified"


def test_metadata_of_what_is_compressed(tmp_path: Path) -> None:
    """Items that are stored in another form are attested: nobody has looked at their numbers."""
    folder = dcp(tmp_path, 20)
    metadata = told(folder)
    place(metadata, "model.head.weight").transform_descriptors = ["zstd"]
    tell(folder, metadata)
    found = examine(str(folder))
    assert (found.fit, found.why.partition(": ")[2]) == (
        "attested",
        "item model.head.weight: is stored compressed or otherwise changed",
    )


TWO_RANKS = """
import os, sys, torch, torch.distributed as dist
from torch.distributed import checkpoint
from torch.distributed.tensor import Shard, distribute_tensor, init_device_mesh
store, folder = sys.argv[1:]
other = os.fork()  # what takes long is the import; it is done once
rank = int(not other)
dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=2)
mesh = init_device_mesh("cpu", (2,))
torch.manual_seed(0)
whole = torch.randn(64, 8)
checkpoint.save({"w": distribute_tensor(whole, mesh, [Shard(0)]), "b": torch.ones(5), "step": 12}, checkpoint_id=folder)
dist.destroy_process_group()
os._exit(os.waitstatus_to_exitcode(os.waitpid(other, 0)[1]) if other else 0)
"""


def test_a_save_by_two_ranks(tmp_path: Path) -> None:
    """A sharded tensor that two processes saved is verified, and a rank's file that is lost or spoilt is told."""
    folder = tmp_path / "step-12"
    words = [sys.executable, "-W", "ignore", "-c", TWO_RANKS, str(tmp_path / "store"), str(folder)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    with subprocess.Popen(words, env=environment, start_new_session=True) as ranks:
        try:
            assert ranks.wait(240) == 0
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(ranks.pid, signal.SIGKILL)
    assert {path.name for path in folder.iterdir()} == {".metadata", "__0_0.distcp", "__1_0.distcp"}
    found = examine(str(folder))
    assert (found.fit, found.why, found.step) == ("verified", "", 12)
    data = (folder / "__1_0.distcp").read_bytes()
    (folder / "__1_0.distcp").write_bytes(data[:-1])
    assert "__1_0.distcp is truncated" in examine(str(folder)).why
    (folder / "__1_0.distcp").unlink()
    assert examine(str(folder)).why == "__1_0.distcp is missing"
