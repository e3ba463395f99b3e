"""The boards and rules as they are checked in, and what their expressions are made of."""

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from gyrostat_exporters.metrics import COUNTER, NAMES

DASHBOARDS = Path(__file__).parents[2] / "dashboards"
JSON = DASHBOARDS / "grafana" / "json"
RULES = DASHBOARDS / "prometheus"
EXPOSED = {f"{name}_total" if said.kind == COUNTER else name: said for name, said in NAMES.items()}
OF_PROMETHEUS = {"up", "scrape_duration_seconds", "scrape_samples_scraped"}  # made by it for every target
_NAME = re.compile(r"\b(?:gyrostat[a-z0-9_:]*|up|scrape_[a-z_]+)\b")
_QUOTED = re.compile(r'"[^"]*"')


class Shown(NamedTuple):
    """A panel and the board that it is on."""

    board: str
    panel: dict[str, Any]

    @property
    def name(self) -> str:
        return f"{self.board}: {self.panel['title']}"

    @property
    def exprs(self) -> list[str]:
        return [target["expr"] for target in self.panel["targets"]]


@cache
def boards() -> dict[str, dict[str, Any]]:
    """Every board by its uid."""
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(JSON.glob("*.json"))}


def panels(board: str) -> list[Shown]:
    """The board's panels, rows left out."""
    return [Shown(board, panel) for panel in boards()[board]["panels"] if panel["type"] != "row"]


def every_panel() -> list[Shown]:
    return [shown for board in boards() for shown in panels(board)]


@cache
def rules(file: str) -> list[dict[str, Any]]:
    """The rules of a file, in their order."""
    groups = yaml.safe_load((RULES / file).read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


@cache
def recorded() -> set[str]:
    """What the recording rules make."""
    return {rule["record"] for rule in rules("fleet.rules.yaml")}


def names_in(expr: str) -> set[str]:
    """The metrics that an expression reads; what stands in quotes is none."""
    return set(_NAME.findall(_QUOTED.sub('""', expr)))


def selectors_in(expr: str) -> Iterator[tuple[str, list[str]]]:
    """Each metric with labels, and the labels it is asked by."""
    for name, inside in re.findall(r"\b(gyrostat_[a-z0-9_]+)\{([^}]*)\}", _QUOTED.sub('""', expr)):
        yield name, re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", inside)
