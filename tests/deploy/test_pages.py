"""docs/kubernetes.md and deploy/README.md: what they say to type works, and what they count is the code's."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from gyrostat.recordfile import CAP_BYTES
from gyrostat_agent.cli.group import COMMANDS
from gyrostat_agent.journal.schema import _WAL_CAP
from gyrostat_agent.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("docs/kubernetes.md", "deploy/README.md")
HOW = (ROOT / PAGES[0]).read_text(encoding="utf-8")
WHAT = (ROOT / PAGES[1]).read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```yaml\n(.*?)^```", HOW, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_links_to_is_there(page: str) -> None:
    """Files, and headings within them."""
    for target in re.findall(r"\]\(([^)]+)\)", (ROOT / page).read_text(encoding="utf-8")):
        path, _, heading = target.partition("#")
        file = (ROOT / page).parent / path if path else ROOT / page
        assert file.exists(), target
        titles = re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE) if heading else []
        assert not heading or heading in [re.sub(r"[^\w -]", "", t.lower()).replace(" ", "-") for t in titles], target


@pytest.mark.parametrize("page", PAGES)
def test_every_command_of_ours_is_one(page: str) -> None:
    """A command that was renamed is not told any more."""
    text = (ROOT / page).read_text(encoding="utf-8")
    told = re.findall(r"(?:^ +|-- |`)gyrostat ([a-z]+)", text, re.MULTILINE)
    assert told and set(told) <= set(COMMANDS)


def test_the_folders_are_those_that_are_there() -> None:
    """Every overlay and component stands in the table, and no other."""
    table = WHAT.partition("| | |")[2].partition("\n\n")[0]
    told = set(
        re.findall(r"`(?:kustomize/(?:overlays/|components/)?)?([a-z-]+)`", table.replace("docker/Dockerfile", ""))
    )
    kustomize = ROOT / "deploy/kustomize"
    there = {path.parent.name for path in kustomize.rglob("kustomization.yaml")}
    assert told == there


def test_the_sizes_are_computed_from_the_caps() -> None:
    """The table of ranks, caps and sizeLimit, row by row."""
    rows = re.findall(r"^\| (\d+) \| (\d+)Mi \| (\d+)Mi \|$", WHAT, re.MULTILINE)
    caps = {n: (n * CAP_BYTES + Settings("", "", "").journal_bytes + _WAL_CAP) >> 20 for n in (1, 4, 8, 16)}
    assert [tuple(map(int, row)) for row in rows] == [(n, cap, 4 * cap) for n, cap in caps.items()]


def test_the_pages_kustomization_builds(tmp_path: Path, build: Callable[[Path], Any], find_pods: Any) -> None:
    """As the page has it, in a folder beside a clone, with its patch for mode act at the end."""
    kustomization, patch = BLOCKS
    (tmp_path / "gyrostat").symlink_to(ROOT)
    mine = tmp_path / "my-run"
    mine.mkdir()
    beside = os.path.relpath(ROOT, mine.resolve())  # kustomize follows no link out of a folder's own tree
    (mine / "kustomization.yaml").write_text((kustomization + patch).replace("../gyrostat", beside))
    overlay = ROOT / "deploy/kustomize/overlays/job"
    for name in ("job.yaml", "attach.yaml"):
        (mine / name).write_text((overlay / name).read_text())
    (document,) = build(mine)
    (pod,) = find_pods(document)
    assert pod.sidecar["image"] == yaml.safe_load(kustomization)["images"][0]["newName"] + ":0.1.0"
    assert "--mode=act" in pod.sidecar["args"] and "--mode=shadow" not in pod.sidecar["args"]
