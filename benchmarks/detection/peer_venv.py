"""The venv in which `make bench-detection` runs: it sees what the project's venv holds, and has the rivals besides.

    .venv/bin/python benchmarks/detection/peer_venv.py .venv-peers

Each line of peers.txt is installed by itself, without its dependencies: torch and numpy are there already and are not
downloaded again, and a rival that cannot be had keeps no other out. Run it again when peers.txt has changed. Exit
status 0 also where nothing could be installed, for the bench then says what it leaves out; 2 where no venv can be made.
"""

import argparse
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Sequence
from pathlib import Path

WANTED = Path(__file__).parent / "peers.txt"
DONE, USAGE = 0, 2
_TIMEOUT = 600  # seconds for one of them: a registry that does not answer must not hold the bench up for ever
_LEFT = 300  # characters of what pip says


def main(argv: Sequence[str] | None = None) -> int:
    """Make the venv and install the rivals; what cannot be installed is told."""
    given = _arguments(argv)
    try:
        made(given.folder)
        wanted = requirements(given.wanted.read_text(encoding="utf-8"))
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"peer_venv: {given.folder}: {error}; give a folder that can be written", file=sys.stderr)
        return USAGE
    for requirement in wanted:
        if why := _installed(given.folder, requirement):
            print(f"peer_venv: {requirement} could not be installed, it is left out: {why}", file=sys.stderr)
    return DONE


def made(folder: Path) -> None:
    """A venv that sees the packages of the interpreter that makes it; one that is there is used again."""
    if not _python(folder).exists():
        venv.create(folder, with_pip=True)
    own = sysconfig.get_paths(vars={"base": str(folder), "platbase": str(folder)})["purelib"]
    beside = f"import site; site.addsitedir({sysconfig.get_paths()['purelib']!r})\n"
    Path(own, "beside.pth").write_text(beside, encoding="utf-8")


def requirements(text: str) -> list[str]:
    """The lines that name a package, without what stands behind a `#`."""
    return [line for raw in text.splitlines() if (line := raw.partition("#")[0].strip())]


def _installed(folder: Path, requirement: str) -> str:
    """Install one; why it could not be, or ''."""
    pip = [str(_python(folder)), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    try:
        done = subprocess.run([*pip, requirement], capture_output=True, text=True, timeout=_TIMEOUT, check=False)
    except subprocess.TimeoutExpired:
        return f"no answer within {_TIMEOUT} s"
    return "" if done.returncode == 0 else (done.stderr.strip()[-_LEFT:] or f"pip ended with {done.returncode}")


def _python(folder: Path) -> Path:
    return folder / "bin" / "python"


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where it is made")
    parser.add_argument("--wanted", type=Path, default=WANTED, help="what is installed (default: peers.txt)")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
