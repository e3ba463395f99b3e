"""The JSON Schema of a pack file, made from the types that read it: for editors that complete and check as one types.

Names that must exist elsewhere in a pack are ``packchecks``' matter, and in no schema.
"""

from typing import Any

from pydantic import TypeAdapter

from gyrostat_rules.detectors import DETECTORS
from gyrostat_rules.packdraft import PackDraft

_LONG = r"^(?:\d+ steps?|\d+ of \d+ steps|(?:\d+(?:d|h|m|s|ms))+)$"


def schema() -> dict[str, Any]:
    """Of a whole file; what a rule may give under ``with`` hangs on its detector."""
    whole = PackDraft.model_json_schema(by_alias=True)
    rule = whole["$defs"]["RuleDraft"]
    for name in ("for", "keep_firing_for"):  # read as text; its default is a value of ours
        rule["properties"][name] = {"type": "string", "pattern": _LONG, "examples": ["10 steps", "3 of 5 steps", "30s"]}
    rule["allOf"] = [
        {"if": {"properties": {"detector": {"const": name}}}, "then": {"properties": {"with": _given(detector.params)}}}
        for name, detector in DETECTORS.items()
    ]
    return {**whole, "$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Gyrostat rule pack"}


def _given(params: type) -> dict[str, Any]:
    """A detector's parameters as a mapping by name: a NamedTuple's own schema is that of a list."""
    hints = {name: kind for name, kind in params.__annotations__.items() if name in _fields(params)}
    defaults: dict[str, Any] = getattr(params, "_field_defaults", {})
    properties = {name: _property(kind, defaults.get(name)) for name, kind in hints.items()}
    needed = [name for name in hints if name not in defaults]
    return {"type": "object", "properties": properties, "required": needed, "additionalProperties": False}


def _fields(params: type) -> tuple[str, ...]:
    return tuple(getattr(params, "_fields", ()))


def _property(kind: Any, default: Any) -> dict[str, Any]:
    found: dict[str, Any] = TypeAdapter(kind).json_schema()
    finite = not isinstance(default, float) or abs(default) < float("inf")
    return found | ({"default": default} if default is not None and finite else {})
