"""The quick trainer's command line. QUICK_TRAINER=fail ends it at once, =wait keeps it at its first step."""

import argparse
import json
import math
import os
import signal
import sys
import time
from collections.abc import Mapping
from typing import Any

from gyrostat import Control, StepGuard, Telemetry

ITEM = 444


def main() -> int:
    """Say the steps; die of the poisoned item as the reference trainer does."""
    told = _arguments()
    if os.environ.get("QUICK_TRAINER") == "fail":
        print("first line\nno such file: model.safetensors", file=sys.stderr)
        return 7
    telemetry, guard, passed_over = Telemetry(told.run_dir), StepGuard(), set[int]()

    def skip_data(arguments: Mapping[str, Any]) -> None:
        passed_over.update(arguments["items"])

    control = Control(telemetry, procedures={"skip_data": skip_data})
    died = ""
    for step in range(1, told.steps + 1):
        control.apply(step)
        poisoned = told.poison_at_step is not None and step >= told.poison_at_step and ITEM not in passed_over
        _say(telemetry, step, poisoned, guard if told.guard else None)
        if poisoned and not (told.guard and not guard.last_applied):
            died = f"step {step + 1}: the policy's probabilities are not finite"
            break
        _linger(control, step, poisoned and guard.skipped > 1, passed_over)
    with open(told.summary, "w", encoding="utf-8") as file:
        json.dump({"died": died or False}, file)
    if not died:
        telemetry.close()
    print(died, file=sys.stderr)
    return int(bool(died))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    for name in ("--checkpoints", "--checkpoint-every", "--seed", "--patience", "--summary", "--run-dir"):
        parser.add_argument(name)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--poison-at-step", type=int)
    parser.add_argument("--guard", action=argparse.BooleanOptionalAction)
    return parser.parse_args()


def _say(telemetry: Telemetry, step: int, poisoned: bool, guard: StepGuard | None) -> None:
    loss = math.nan if poisoned else 0.1
    applied = guard is None or guard.allows(step, loss, loss)
    values = {"loss": loss, "grad_norm": loss * 10, "reward": math.inf if poisoned else 0.5, "entropy": 0.9}
    values |= {"step_applied": float(applied), "params_finite": float(not (poisoned and applied))}
    if poisoned:
        values["suspect_item"] = float(ITEM)
    telemetry.record(step, expert_load=None, **values)


def _linger(control: Control, step: int, incident: bool, passed_over: set[int]) -> None:
    """Where the sidecar has an incident to mend, stay until it has; for ever where a test asks for that."""
    if os.environ.get("QUICK_TRAINER") == "wait":
        signal.pause()
    end = time.monotonic() + 30.0
    while incident and not passed_over and time.monotonic() < end:
        time.sleep(0.02)
        control.apply(step + 1)


if __name__ == "__main__":
    sys.exit(main())
