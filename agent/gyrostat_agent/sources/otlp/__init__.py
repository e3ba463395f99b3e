"""OTLP over HTTP, received: metrics that a trainer exports, as rows of its steps.

What SDKs drop never comes here: that of Python leaves out NaN and infinity (seen in 1.45, not in 1.25), so that a loss
that became NaN merely stops. Who can choose gives records, or logs.
"""

from gyrostat_agent.sources.otlp.receiver import PATH, OtlpIn

__all__ = ["PATH", "OtlpIn"]
