"""Installed: whether OpenTelemetry is there, asked without importing it."""

from importlib.util import find_spec

NEEDED = "pip install 'gyrostat[otlp]'"
_WANTED = ("opentelemetry.sdk._logs", "opentelemetry.exporter.otlp.proto.common", "google.protobuf")


def missing() -> str:
    """The first module that is not there, '' where nothing is missing."""
    return next((name for name in _WANTED if not _is_there(name)), "")


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ImportError:  # the package that it is in is not there
        return False
