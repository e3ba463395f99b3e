"""Rows of the scenario campaign: what each scenario and seed came to, and the file that keeps them."""

import contextlib
import json
import os
import platform
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from scenario_code import code

from gyrostat_agent.demo.scenarios import CLEAN, SCENARIOS, UNTREATED, Layout, command

_ASK = "page"  # asks a person, and mends nothing


class RowsError(Exception):
    """A results file cannot be used: which, why, what to do."""


class Row(NamedTuple):
    """One scenario and seed. Rewards (0 to 1) are means of the last ten steps, None where that run died.

    ``twin`` is the reward of the control twin, None where it is not known yet or where there is no fault to judge.
    ``acted_after``: steps from the fault to the first action, None where one was missing. ``went_back_to``: the
    steps that the treated run went back to. ``actions``: ``remedy: outcome``, those passed by included. ``code``: a
    name of the code that played it, '' where that is not known.
    """

    scenario: str
    seed: int
    steps: int
    mended: bool
    why: str
    clean: float | None
    untreated: float | None
    treated: float | None
    twin: float | None
    lost_steps: int
    acted_after: int | None
    went_back_to: tuple[int, ...]
    actions: tuple[str, ...]
    code: str = ""

    @property
    def key(self) -> tuple[str, int]:
        """What there is one row of."""
        return self.scenario, self.seed

    @property
    def difference(self) -> float | None:
        """Reward treated less that of the twin, a run that died having none; None where there is no twin."""
        return None if self.twin is None else (self.treated or 0.0) - self.twin


class Results(NamedTuple):
    """A results file: the rows, and what they were ``played`` with: versions by name."""

    played: Mapping[str, str]
    rows: tuple[Row, ...]


def has_fault(scenario: str) -> bool:
    """Whether anything is broken in it: its untreated run is started otherwise than its clean one."""
    one, nowhere = SCENARIOS[scenario], Layout(Path())
    return command(one, CLEAN, nowhere, 60, 0) != command(one, UNTREATED, nowhere, 60, 0)


def reduced(told: Mapping[str, Any]) -> Row:
    """The row of what ``gyrostat demo --json`` tells of one scenario and seed."""
    scenario, went_back_to = told["scenario"], tuple(told["went_back_to"])
    deeds = [deed for incident in told["incidents"] for deed in incident["actions"]]
    return Row(
        scenario, told["seed"], told["steps"], told["mended"], told["why"],
        told["clean"], told["untreated"], told["treated"],
        told["clean"] if has_fault(scenario) and not went_back_to else None,
        told["lost_steps"], _acted_after(told), went_back_to,
        tuple(f"{deed['remedy']}: {deed['outcome'] or deed['verdict'] or 'no outcome'}" for deed in deeds),
        code(),
    )  # fmt: skip


def _acted_after(told: Mapping[str, Any]) -> int | None:
    if not has_fault(told["scenario"]):
        return None
    acted = [_acted_at(incident, deed) for incident in told["incidents"] for deed in incident["actions"]]
    return min((at - told["fault_step"] for at in acted if at is not None), default=None)


def _acted_at(incident: Mapping[str, Any], deed: Mapping[str, Any]) -> int | None:
    """The step at which a trainer obeyed; a start anew, which tells only where it begins, counts as its incident's."""
    if deed["verdict"] != "allow" or not deed["outcome"] or deed["remedy"] == _ASK:
        return None
    return int(max(incident["fired_step"], deed.get("applied_step") or -1))


def versions() -> dict[str, str]:
    """What the campaign is played with."""
    found = {"python": platform.python_version()}
    for name in ("gyrostat", "torch"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def read(path: Path) -> Results:
    """A results file; raises RowsError."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        return Results(told["played"], tuple(_row(one) for one in told["rows"]))
    except OSError as error:
        raise RowsError(f"{path}: {error.strerror}; give a file that can be read") from None
    except (ValueError, KeyError, TypeError):
        raise RowsError(f"{path} holds no results of a campaign; give another file, or delete it") from None


def write(path: Path, rows: Iterable[Row], summary: Iterable[Mapping[str, Any]]) -> None:
    """Write a results file, a line for each row, whole or not at all; raises OSError."""
    order = {name: place for place, name in enumerate(SCENARIOS)}
    ordered = sorted(rows, key=lambda row: (order.get(row.scenario, len(order)), *row.key))
    said = {"mode": "act", "approvals": False, "played": versions()}
    parts = [f'"{name}": {json.dumps(value)}' for name, value in said.items()]
    parts += [_lines("summary", summary), _lines("rows", [row._asdict() for row in ordered])]
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}")
    unfinished.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")
    unfinished.replace(path)


def _row(told: dict[str, Any]) -> Row:
    lists = {name: tuple(told[name]) for name in ("went_back_to", "actions")}
    return Row(**{**told, **lists})


def _lines(name: str, values: Iterable[Mapping[str, Any]]) -> str:
    inner = ",\n ".join(json.dumps(dict(value), allow_nan=False) for value in values)
    return f'"{name}": [\n {inner}\n]'
