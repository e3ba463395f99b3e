"""The built-in packs with numbers small enough that a scenario of twenty steps meets every one of them."""

import json
from functools import lru_cache
from typing import Any, NamedTuple

import yaml

from gyrostat_agent.cli.options import builtin

_ROLLBACK = {"remedy": "rollback", "horizon": 3, "irreversible": True}
_TURN = {**_ROLLBACK, "knobs": [{"name": "lr_scale", "times": 0.5}]}
_RESTART = {"remedy": "restart", "horizon": 3, "irreversible": True}
_SKIP = {"remedy": "skip_data", "horizon": 3, "irreversible": True}
_STOP = {"remedy": "stop", "irreversible": True}

# What each variant changes of the playbook for non-finite values; "" is said of the one for a crash.
_VARIANTS: dict[str, dict[str, Any]] = {
    "core": {"budget": {"actions": 6, "steps": 200}},
    "one action": {"budget": {"actions": 1, "steps": 200}},
    "one incident": {"ceiling": {"incidents": 1, "steps": 1000}},
    "long cooldown": {"cooldown": 12},
    "each rung once": {"cooldown": 0, "rungs": [{**_ROLLBACK, "budget": {"actions": 1}}, _STOP]},
    "standstill of one": {"standstill": {"incidents": 1, "steps": 20}},
    "no step lost": {"blast_radius": {"steps": 0}, "rungs": [_ROLLBACK, _STOP]},
    "knob first": {"rungs": [_TURN, _STOP]},
    "restart first": {"rungs": [_RESTART, _STOP]},
    "restart after death": {"": [_RESTART, {"remedy": "page"}], "rungs": [_RESTART, _STOP]},
}
NAMES = tuple(_VARIANTS)


class Bounds(NamedTuple):
    """A playbook's bounds, as a person reads them in the file: so many actions in so many steps, so many steps lost."""

    actions: int
    steps: int
    lost: int
    once: tuple[str, ...]  # remedies that may be tried once


@lru_cache
def bounds(name: str) -> dict[str, Bounds]:
    """The budget of each kind of incident in a variant."""
    return {b["incident"]: _bounds(b) for b in yaml.safe_load(pack(name))["playbooks"]}


def _bounds(book: dict[str, Any]) -> Bounds:
    budget = book.get("budget", {})
    once = tuple(r["remedy"] for r in book["rungs"] if r.get("budget", {}).get("actions") == 1)
    lost = book.get("blast_radius", {}).get("steps", 1000)
    return Bounds(budget.get("actions", 3), budget.get("steps", 200), lost, once)


@lru_cache
def pack(name: str) -> str:
    """The text of a variant."""
    text = builtin().replace("after_seconds: 900", "after_seconds: 120")  # silence, too, is short here
    parts = list(yaml.safe_load_all(text))
    tree = {"pack": "all", **{n: [one for part in parts for one in part.get(n, ())] for n in ("groups", "playbooks")}}
    books = {b["incident"]: b for b in tree["playbooks"]}
    book = books["nonfinite"]
    book["rungs"] = [_SKIP, _ROLLBACK, _TURN, _RESTART, _STOP]
    book["cooldown"] = 0
    changes = dict(_VARIANTS[name])
    if rungs := changes.pop("", None):
        books["crash"]["rungs"] = rungs
    book.update(changes)
    return yaml.safe_dump(json.loads(json.dumps(tree)), sort_keys=False)  # without aliases
