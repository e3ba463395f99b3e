"""Gyrostat's SDK: what a training process imports. The standard library alone; nothing here ever raises into
a training loop, waits for the sidecar unless told how long, or changes the trainer but by an agreed directive.

::

    telemetry = gyrostat.Telemetry()                         # finds its run in GYROSTAT_RUN_DIR
    telemetry.record(step, loss=loss, grad_norm=norm)        # once a step
    control.apply(step)                                      # once a step, where knobs may change
"""

from gyrostat.control import Collective, Control
from gyrostat.knob import Knob
from gyrostat.stepguard import StepGuard
from gyrostat.telemetry import Counts, Telemetry

__all__ = ["Collective", "Control", "Counts", "Knob", "StepGuard", "Telemetry", "__version__"]
__version__ = "0.1.0"
