"""Another run for a chaos run to meet: it tells the same checkpoint folder, and has an agent of its own.

python other_run.py RUN_DIR CHECKPOINTS
"""

import signal
import subprocess
import sys
import time

from gyrostat import Control, Telemetry

_STEPS, _SECONDS = 60, 0.25


def main(run_dir: str, checkpoints: str) -> int:
    """Tell healthy steps for a while, with an agent beside it; the agent's exit status."""
    argv = [sys.executable, "-m", "gyrostat_agent", "agent", run_dir, "--mode", "act", "--listen", ""]
    agent = subprocess.Popen(argv)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
    try:
        telemetry = Telemetry(run_dir, run="other", rank=0, world=1, checkpoint_root=checkpoints)
        control = Control(telemetry)
        for step in range(1, _STEPS):
            control.apply(step)
            telemetry.record(step, loss=0.5, reward=0.9)
            time.sleep(_SECONDS)
        telemetry.close()
    finally:
        agent.terminate()
        status = agent.wait(20)
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
