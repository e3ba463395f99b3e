"""Names of files in an archive: which can be trusted to stay in the folder that is restored.

Both sides ask: what is archived must be restorable on another machine, and an index may have been written by anyone.
"""

from gyrostat.wire.fields import clean

_PART_BYTES, _PATH_BYTES, _DEPTH = 255, 1024, 16  # what file systems take for a name; nobody nests deeper


def plain(name: object) -> str:
    """``name`` where it can only be something in a folder itself; raises ValueError."""
    if not isinstance(name, str) or not name or name in (".", "..") or "/" in name or clean(name) != name:
        raise ValueError(f"{clean(str(name))[:80]!r} is not a plain name")
    if len(name.encode()) > _PART_BYTES:
        raise ValueError(f"{name[:80]!r} is too long for a name: at most {_PART_BYTES} bytes")
    return name


def inner(path: object) -> str:
    """``path`` where it leads to a file below the folder, by names alone; raises ValueError."""
    if not isinstance(path, str) or path.count("/") >= _DEPTH or len(path.encode("utf-8", "replace")) > _PATH_BYTES:
        raise ValueError(f"{clean(str(path))[:80]!r} is not a path of at most {_DEPTH} names, {_PATH_BYTES} bytes")
    for name in path.split("/"):
        try:
            plain(name)
        except ValueError:
            raise ValueError(f"{clean(path)[:80]!r} is not a path of plain names") from None
    return path


def apart(paths: list[str]) -> list[str]:
    """``paths`` where none occurs twice and none is a folder of another; raises ValueError."""
    known = set(paths)
    if len(known) != len(paths):
        raise ValueError("a file is named twice")
    for path in paths:
        while "/" in path:
            path = path.rpartition("/")[0]
            if path in known:
                raise ValueError(f"{path[:80]!r} is named both as a file and as a folder")
    return paths
