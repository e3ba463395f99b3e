"""The console script. The bare wheel is the SDK alone, so this says what to install where the agent is missing."""

import sys

NEEDED = "gyrostat's command line needs its agent: pip install 'gyrostat[agent]'"


def main() -> int:
    """Run the command line; exit status 2, and what to install, where its libraries are not there."""
    try:
        from gyrostat_agent.cli import main as run
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("gyrostat"):
            raise
        print(f"{NEEDED}  (missing: {error.name})", file=sys.stderr)
        return 2
    return run()


if __name__ == "__main__":
    sys.exit(main())
