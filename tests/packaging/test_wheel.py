"""The wheel: installed alone it is the SDK, brings nothing else, and says what more there is to install."""

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "trainer", "rules", "agent", "exporters")
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PIP_"))}


def run(*command: object, **more: object) -> subprocess.CompletedProcess[str]:
    """The finished command, its output as text, without this process's PYTHONPATH."""
    return subprocess.run(  # type: ignore[call-overload, no-any-return]
        [str(word) for word in command], capture_output=True, text=True, env=ENVIRONMENT, timeout=300, **more
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy: no build folder is left in the tree."""
    copy = tmp_path_factory.mktemp("source")
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        elif (ROOT / name).exists():
            shutil.copy(ROOT / name, copy / name)
    built = run(
        sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", copy / "dist", copy, check=False
    )
    assert built.returncode == 0, built.stdout[-3000:] + built.stderr[-3000:]
    (found,) = (copy / "dist").glob("*.whl")
    return found


@pytest.fixture(scope="module")
def alone(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A fresh environment with the wheel in it and nothing else."""
    environment = tmp_path_factory.mktemp("alone") / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", environment, check=True)
    before = set((environment / "bin").iterdir())
    options = ("--no-deps", "--no-index", "--disable-pip-version-check", "--no-cache-dir")
    pip = (sys.executable, "-m", "pip", "--python", environment / "bin" / "python", "install", *options)
    done = run(*pip, wheel, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {p.name for p in set((environment / "bin").iterdir()) - before} == {"gyrostat"}
    yield environment
    shutil.rmtree(environment)


def test_the_wheel_asks_for_nothing(wheel: Path) -> None:
    """Without an extra nothing is required; every extra's packages are its own."""
    with zipfile.ZipFile(wheel) as files:
        (name,) = (n for n in files.namelist() if n.endswith(".dist-info/METADATA"))
        metadata = Parser().parsestr(files.read(name).decode())
    required = metadata.get_all("Requires-Dist") or []
    assert required
    assert [line for line in required if "extra ==" not in line] == []


def test_it_puts_only_its_own_names_into_site_packages(alone: Path) -> None:
    """Nothing generic, such as ``rules`` or ``trainer``, lands beside other people's packages."""
    (packages,) = (alone / "lib").glob("python*/site-packages")
    names = sorted(p.name for p in packages.iterdir())
    assert [n for n in names if not n.startswith("gyrostat")] == []
    assert {"gyrostat", "gyrostat_agent", "gyrostat_exporters", "gyrostat_reference", "gyrostat_rules"} <= set(names)


def test_the_wheel_holds_the_data_that_the_code_reads(wheel: Path) -> None:
    """Every data file that stands beside the code, and each package's type marker, is in the wheel."""
    with zipfile.ZipFile(wheel) as files:
        packed = set(files.namelist())
    wanted = ("py.typed", "*.yaml", "*.md", "*.safetensors", "*.html")
    for folder in ("trainer", "rules", "agent", "exporters"):
        beside = {str(p.relative_to(ROOT / folder)) for kind in wanted for p in (ROOT / folder).rglob(kind)}
        assert beside <= packed


def test_the_sdk_works_alone(alone: Path, tmp_path: Path) -> None:
    """Installed alone, a trainer records, is controlled and guarded."""
    (tmp_path / "run").mkdir(mode=0o700)
    code = (
        "import sys, gyrostat; t = gyrostat.Telemetry(sys.argv[1]); t.record(1, loss=0.5, expert_load=[1, 2]);"
        "c = gyrostat.Control(t); c.apply(1); assert gyrostat.StepGuard().allows(1, 0.5, 1.0); print(t.counts.written)"
    )
    done = run(alone / "bin" / "python", "-W", "error", "-c", code, tmp_path / "run", check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")


@pytest.mark.parametrize("arguments", [(), ("--help",), ("watch",)], ids=["bare", "help", "a command"])
def test_the_command_says_what_to_install(alone: Path, arguments: tuple[str, ...]) -> None:
    """Without the agent's libraries the command names what to install; no stack trace, exit status 2."""
    done = run(alone / "bin" / "gyrostat", *arguments, check=False)
    assert done.returncode == 2
    assert "pip install 'gyrostat[agent]'" in done.stderr
    assert "Traceback" not in done.stderr
