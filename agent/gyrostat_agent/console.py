"""The console script. The bare wheel is the SDK alone, so this says what to install where the agent is missing."""

import os
import sys

NEEDED = "gyrostat's command line needs its agent: pip install 'gyrostat[agent]'"
DEBUG = "GYROSTAT_DEBUG"  # environment: 1 shows where an internal error happened


def main() -> int:
    """Run the command line; exit status 2, and what to install, where its libraries are not there.

    An error that nobody foresaw is one line and exit status 1; with GYROSTAT_DEBUG=1 its stack trace is shown.
    """
    try:
        from gyrostat_agent.cli import main as run
    except ModuleNotFoundError as error:
        if _is_ours(error):
            raise
        return _missing(error)
    try:
        return run()
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and not _is_ours(error):  # commands are imported when called
            return _missing(error)
        if os.environ.get(DEBUG) == "1":
            raise
        return _internal(error)


def _is_ours(error: ModuleNotFoundError) -> bool:
    return (error.name or "").startswith("gyrostat")


def _missing(error: ModuleNotFoundError) -> int:
    print(f"{NEEDED}  (missing: {error.name})", file=sys.stderr)
    return 2


def _internal(error: Exception) -> int:
    from gyrostat.wire.fields import clean

    what = clean(f"{type(error).__name__}: {error}")
    print(f"gyrostat: internal error: {what} ({DEBUG}=1 shows where)", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
