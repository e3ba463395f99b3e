"""One module a kind of job: how it is stopped and begun again, how one sees that it stands still, what it cannot.

``KINDS`` has them by what an owner reference says; two kinds are called Job, so the group counts.
"""

from gyrostat_agent.kubernetes.jobs import batchjob, jobset, pytorchjob, trainjob, volcano
from gyrostat_agent.kubernetes.jobs.kind import JobKind

ALL: tuple[JobKind, ...] = (batchjob.KIND, jobset.KIND, trainjob.KIND, pytorchjob.KIND, volcano.KIND)


def kind_of(api: str, kind: str) -> JobKind | None:
    """The kind that an object's ``apiVersion`` and ``kind`` name, of whatever version; None for an unknown one."""
    group = api.rpartition("/")[0]
    return next((k for k in ALL if (k.api.rpartition("/")[0], k.kind) == (group, kind)), None)
