"""Versions: which Transformers and TRL this was tried with, and what is said of others.

What a version lacks is found where it is missed (a method, a list of metrics) and said there by name; here is only
said that nobody has looked. torch's own absence needs no word: without it there is no trainer.
"""

import sys

# The first and the last of each that a test of ours has trained with; equal where it was one.
TRIED = {"transformers": ("5.24", "5.24"), "trl": ("1.16", "1.16")}


def unfit() -> str:
    """What to say of the versions that are loaded; '' where they were tried."""
    odd = [words for package, (first, last) in TRIED.items() if (words := _odd(package, first, last))]
    return f"not tried with {' and '.join(odd)}; what is missed there is named when it is missed" if odd else ""


def _odd(package: str, first: str, last: str) -> str:
    version = str(getattr(sys.modules.get(package), "__version__", "") or "")
    parts = _parts(version)
    if not parts or _parts(first) <= parts <= _parts(last):
        return ""
    return f"{package} {version} (" + (f"older than {first})" if parts < _parts(first) else f"newer than {last})")


def _parts(version: str) -> tuple[int, ...]:
    """Major and minor number; () where it is no version."""
    words = version.split(".")[:2]
    return tuple(int(w) for w in words) if all(w.isdigit() for w in words) and words else ()
