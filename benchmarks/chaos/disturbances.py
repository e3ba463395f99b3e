"""Disturbances: what happens to a run beside its faults: processes, checkpoints, disks, telemetry, clocks, people.

One table: each has a name, the range its amount is drawn from, and what that amount means. Who brings it about
stands in ``blows`` (done to a run from outside), ``trainer_child`` and ``agent_child`` (built in from the start).
"""

from collections.abc import Mapping
from typing import NamedTuple


class Disturbance(NamedTuple):
    """``low`` to ``high``: its amount. ``weight``: how often it is drawn, beside the others'.

    ``mendable`` false: nobody can mend a run under it, and being held with a page is all that may be asked.
    ``pod``: it ends the pod, which is started again as a job's controller does. ``alters``: it makes incidents of its
    own (a death, a stall, a full disk), which say nothing about the faults.
    """

    doc: str
    low: float = 0.0
    high: float = 0.0
    weight: float = 1.0
    mendable: bool = True
    pod: bool = False
    alters: bool = False


DISTURBANCES: Mapping[str, Disturbance] = {
    "agent_killed": Disturbance("SIGKILL of the agent", weight=2),
    "agent_killed_at": Disturbance("SIGKILL of the agent at a named failpoint; amount: which", 0, 1, weight=2),
    "agent_stopped": Disturbance("SIGSTOP of the agent, SIGCONT so many seconds later", 2, 15, weight=2),
    "agent_ended": Disturbance("SIGTERM of the agent"),
    "trainer_killed": Disturbance("SIGKILL of the trainer, or of its last rank", pod=True, alters=True),
    "trainer_stopped": Disturbance("SIGSTOP of the trainer, SIGCONT so many seconds later", 2, 15),
    "pod_ended": Disturbance("SIGTERM of the supervisor, as a pod that is moved away", pod=True, alters=True),
    "pod_killed": Disturbance("SIGKILL of supervisor, trainer and agent at once", pod=True, alters=True),
    "checkpoint_truncated": Disturbance("the newest checkpoint's weights lose their second half"),
    "checkpoint_flipped": Disturbance("one bit of the newest checkpoint's weights is flipped"),
    "checkpoint_lost_file": Disturbance("a file of the newest checkpoint is deleted"),
    "checkpoint_manifest": Disturbance("the newest checkpoint's manifest is cut off in its middle"),
    "checkpoint_nonfinite": Disturbance("a NaN in the newest checkpoint's weights, under digests that fit"),
    "rotation": Disturbance("so few checkpoints are kept, one every two steps: rotation races certification", 1, 3, 2),
    "disk_full_run": Disturbance("the run directory's disk is full for so many seconds", 3, 15, alters=True),
    "disk_full_checkpoints": Disturbance("the checkpoints' disk is full for so many seconds", 3, 15, alters=True),
    "records_cut": Disturbance("the record file loses this share of what the agent has not read", 0.1, 1),
    "records_copied": Disturbance("what the agent has not read is there twice", weight=1),
    "records_swapped": Disturbance("two frames that the agent has not read change places"),
    "records_flipped": Disturbance("a byte of what the agent has not read is another"),
    "records_deleted": Disturbance("the trainer's record file is deleted"),
    "clock_jumped": Disturbance("the clock of the whole node jumps by so many seconds", -7200, 7200),
    "control_late": Disturbance("the trainer looks for directives every so many steps", 3, 6),
    "control_mute": Disturbance("the trainer never obeys and never answers", weight=0.5, mendable=False),
    "control_deaf": Disturbance("the trainer says yes to everything and does nothing", weight=0.5, mendable=False),
    "control_harmful": Disturbance("a knob that is turned makes answers greedier, until it is given back", weight=0.5),
    "second_agent": Disturbance("a second agent is started on the same run directory"),
    "second_run": Disturbance("another run, with an agent, on the same checkpoint folder", weight=0.5, mendable=False),
    "upgrade_form": Disturbance("the agent is ended; the next one cannot read its snapshot"),
    "upgrade_rules": Disturbance("the agent is ended; the next one's rules say it otherwise", weight=0.5),
}  # fmt: skip
