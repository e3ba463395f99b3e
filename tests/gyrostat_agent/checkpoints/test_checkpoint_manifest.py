import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from checkpoint_folders import contents, manifest_of, written

from gyrostat_agent.checkpoints import Limits
from gyrostat_agent.checkpoints.reference import find
from gyrostat_agent.checkpoints.verify import verify

GOOD = manifest_of(contents())
FILE = GOOD["files"]["model.safetensors"]


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in GOOD.items() if key != name}


def naming(name: str, **entry: object) -> dict[str, Any]:
    return {**GOOD, "files": {**GOOD["files"], name: {**FILE, **entry}}}


@pytest.mark.parametrize(
    ("body", "why"),
    [
        pytest.param("", "manifest.json cannot be read: Expecting value", id="empty"),
        pytest.param(json.dumps(GOOD)[:-20], "manifest.json cannot be read: ", id="cut"),
        pytest.param("[" * 100_000, "manifest.json cannot be read: ", id="nested"),
        pytest.param("[]", "manifest.json cannot be read: ", id="list"),
        pytest.param("null", "manifest.json cannot be read: ", id="null"),
        pytest.param({**GOOD, "format": "other/2"}, "its format is 'other/2', not 'gyrostat-", id="foreign"),
        pytest.param(without("format"), "manifest.json says nothing of 'format'", id="formatless"),
        pytest.param(without("step"), "manifest.json says nothing of 'step'", id="stepless"),
        pytest.param({**GOOD, "step": -1}, "-1 is not a whole number", id="negative-step"),
        pytest.param({**GOOD, "step": True}, "True is not a whole number", id="true-step"),
        pytest.param({**GOOD, "step": 10**30}, "is not a whole number", id="endless-step"),
        pytest.param({**GOOD, "segment": 1.0}, "1.0 is not a whole number", id="fraction"),
        pytest.param({**GOOD, "time": "now"}, "now is not a finite number", id="text-time"),
        pytest.param({**GOOD, "time": float("inf")}, "Infinity is not a finite number", id="infinite-time"),
        pytest.param({**GOOD, "knobs": {"lr": float("nan")}}, "NaN is not a finite number", id="nan-knob"),
        pytest.param({**GOOD, "knobs": []}, "manifest.json cannot be read: ", id="knobs-list"),
        pytest.param(json.dumps(GOOD).replace("0.001", "1e999"), "inf is not a finite number", id="overflow"),
        pytest.param({**GOOD, "files": {}}, "it names 0 files", id="no-files"),
        pytest.param({**GOOD, "files": ["model.safetensors"]}, "manifest.json cannot be read: ", id="files-list"),
        pytest.param({**GOOD, "files": {"state.json": FILE}}, "it names no .safetensors file", id="no-tensors"),
        pytest.param(naming("b", digest="sha256:00"), "is not a digest", id="digest"),
        pytest.param(naming("b", bytes="9"), "is not a whole number", id="bytes"),
        pytest.param(naming("../x"), "'../x' is not a plain file name", id="parent"),
        pytest.param(naming("/etc/passwd"), "'/etc/passwd' is not a plain file name", id="absolute"),
        pytest.param(naming("a/b.safetensors"), "is not a plain file name", id="nested-name"),
        pytest.param(naming(".."), "'..' is not a plain file name", id="dots"),
        pytest.param(naming(""), "'' is not a plain file name", id="nameless"),
        pytest.param(naming("a\nb"), "is not a plain file name", id="newline"),
        pytest.param(naming("a\0b"), "is not a plain file name", id="nul"),
        pytest.param(naming("x" * 256), "is not a plain file name", id="long"),
        pytest.param(naming("manifest.json"), "'manifest.json' is not a plain file name", id="itself"),
        pytest.param('{"step": 1, ' + json.dumps(GOOD)[1:], "a name occurs twice", id="twice"),
    ],
)  # fmt: skip
def test_manifest_is_read_with_distrust(tmp_path: Path, body: Any, why: str) -> None:
    """A manifest that is malformed, foreign, or points anywhere else makes the checkpoint unfit, in words."""
    folder = written(tmp_path)
    (folder / "manifest.json").write_text(body if isinstance(body, str) else json.dumps(body))
    found = verify(str(folder))
    assert (found.fit, found.step) == ("unfit", 20)
    assert why in found.why
    assert len(found.why) < 300


def test_no_manifest(tmp_path: Path) -> None:
    """Without a manifest nothing is known: unfit, its step from its name."""
    folder = written(tmp_path, 33)
    (folder / "manifest.json").unlink()
    found = verify(str(folder))
    assert (found.fit, found.why, found.step, found.digest) == ("unfit", "manifest.json is missing", 33, "")


def test_manifest_that_is_a_link_or_a_pipe(tmp_path: Path) -> None:
    """A manifest elsewhere is not followed, and a pipe is not waited for."""
    folder = written(tmp_path)
    (folder / "manifest.json").rename(tmp_path / "elsewhere")
    (folder / "manifest.json").symlink_to(tmp_path / "elsewhere")
    assert verify(str(folder)).why == "manifest.json is a link; a link is not followed"
    (folder / "manifest.json").unlink()
    os.mkfifo(folder / "manifest.json")
    assert stat.S_ISFIFO((folder / "manifest.json").stat().st_mode)
    assert verify(str(folder)).why == "manifest.json is not a regular file"


def test_limits(tmp_path: Path) -> None:
    """A manifest is not read beyond its limits: bytes, files, header, JSON."""
    folder = written(tmp_path)
    os.truncate(folder / "manifest.json", 1 << 40)
    assert verify(str(folder)).why == "manifest.json has 1099511627776 bytes; at most 4194304 are read"
    folder = written(tmp_path, 21)
    assert "it names 3 files; 1 to 2 are believed" in verify(str(folder), Limits(files=2)).why
    assert "the header is said to have" in verify(str(folder), Limits(header_bytes=10)).why
    assert "bytes of JSON; at most 10 are read" in verify(str(folder), Limits(json_bytes=10)).why
    assert verify(str(folder)).fit == "verified"


def test_find(tmp_path: Path) -> None:
    """Folders named as checkpoints that have a manifest are found; the unfinished and the unrelated are not."""
    expected = [written(tmp_path, 1), written(tmp_path, 2).rename(tmp_path / "step-00000002-s1")]
    expected.append(written(tmp_path, 3).rename(tmp_path / "step-00000003-s1-2"))
    written(tmp_path, 4).rename(tmp_path / ".step-00000004.tmp")
    written(tmp_path, 5).rename(tmp_path / "kept-00000005")
    (written(tmp_path, 6) / "manifest.json").unlink()
    (tmp_path / "step-00000007").write_text("a file")
    (tmp_path / "step-00000008").symlink_to(tmp_path / "nowhere")
    assert sorted(find(str(tmp_path))) == sorted(map(str, expected))
    assert find(str(tmp_path / "not yet")) == {}
