"""Code: a short name of the code that plays a scenario, so that rows of two versions are not taken for one."""

import functools
import hashlib
from importlib import util
from pathlib import Path

PLAYERS = ("gyrostat", "gyrostat_reference", "gyrostat_rules", "gyrostat_agent")
_READ = (".py", ".yaml", ".safetensors")  # what decides: code, rules, and the bases that training begins from
_LENGTH = 10  # of the name, hexadecimal


@functools.cache
def code() -> str:
    """The name of the packages' files as they are now, by their content; the same in every clone."""
    digest = hashlib.blake2b(digest_size=_LENGTH // 2)
    for package in PLAYERS:
        for file in _files(package):
            digest.update(hashlib.blake2b(file.read_bytes()).digest())
    return digest.hexdigest()


def _files(package: str) -> list[Path]:
    found = util.find_spec(package)
    folders = [Path(place) for place in (found.submodule_search_locations or ())] if found else []
    return sorted(file for folder in folders for file in folder.rglob("*") if file.suffix in _READ)
