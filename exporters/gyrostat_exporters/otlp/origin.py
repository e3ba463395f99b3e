"""Origin: who tells, on every metric, log record and span: the agent of one run on one machine."""

import socket
from functools import lru_cache

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from gyrostat import __version__
from gyrostat.wire.fields import clean
from gyrostat_exporters.spans import short

SCOPE = InstrumentationScope("gyrostat", __version__)
_SECOND = 1e9
_LAST = 2**63 - 1


@lru_cache(maxsize=4)
def origin(run: str) -> Resource:
    """The agent of ``run`` here; what OTEL_RESOURCE_ATTRIBUTES says stands beside it."""
    host, name = clean(socket.gethostname()), short(clean(run))
    return Resource.create(
        {
            "service.name": "gyrostat", "service.version": __version__, "service.instance.id": f"{host}/{name}",
            "host.name": host, "gyrostat.run": name,
        }
    )  # fmt: skip


def nanos(at: float) -> int:
    """Unix seconds as OTLP has them; what no clock says is 0."""
    return min(_LAST, int(at * _SECOND)) if 0.0 <= at < _LAST else 0
