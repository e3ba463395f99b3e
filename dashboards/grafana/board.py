"""Board: rows of panels with a name; its variables, annotations and links are alike in all boards but the fleet's."""

import json
from typing import Any, NamedTuple

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as models
from panel import DATASOURCE, Panel, build
from query import of

COLUMNS = 24
TAG = "gyrostat"
RUNBOOKS = "https://docs.example.org/gyrostat/runbooks"  # nobody's address: people put in their own, in the board


class Row(NamedTuple):
    """Panels under one heading, from left to right, and on."""

    title: str
    panels: tuple[Panel, ...]


class Board(NamedTuple):
    """One board. ``uid`` names its file and stands in its address; ``of_a_run`` is False where it shows all runs."""

    uid: str
    title: str
    description: str
    rows: tuple[Row, ...]
    of_a_run: bool = True


def rendered(board: Board) -> str:
    """The board's JSON as it is checked in."""
    return json.dumps(_built(board), cls=JSONEncoder, indent=2, sort_keys=True) + "\n"


def _built(board: Board) -> Any:
    made = dashboard.Dashboard(board.title).uid(board.uid).description(board.description).tags([TAG])
    made.timezone("browser").refresh("30s").time("now-6h", "now").tooltip(models.DashboardCursorSync.CROSSHAIR)
    made.editable().version(1).variables(_variables(board)).link(_others())
    if board.of_a_run:
        for annotation in _annotations():
            made.annotation(annotation)
    number, line = 1, 0
    for row in board.rows:
        made.with_row(dashboard.Row(row.title).id(number).grid_pos(models.GridPos(1, COLUMNS, 0, line)))
        number, line = number + 1, line + 1
        places, line = _placed(row.panels, line)
        for panel, place in zip(row.panels, places, strict=True):
            made.with_panel(build(panel, number, place))
            number += 1
    return made.build()


def _placed(panels: tuple[Panel, ...], line: int) -> tuple[list[tuple[int, int]], int]:
    """Where each panel goes, and the line below them: the builder's own places run over the edge."""
    places, column, tallest = [], 0, 0
    for panel in panels:
        if column + panel.width > COLUMNS:
            column, line, tallest = 0, line + tallest, 0
        places.append((column, line))
        column, tallest = column + panel.width, max(tallest, panel.height)
    return places, line + tallest


def _variables(board: Board) -> list[Any]:
    source = dashboard.DatasourceVariable("datasource").label("Prometheus").type("prometheus").multi(False)
    runbooks = dashboard.TextBoxVariable("runbooks").label("Runbooks").default_value(RUNBOOKS)
    runbooks.current(models.VariableOption(True, RUNBOOKS, RUNBOOKS))
    if not board.of_a_run:
        return [source, runbooks]
    run = _asked("run", "Run", "label_values(gyrostat_run, run)").multi(False)
    agents = (
        _asked("instance", "Agent", 'label_values(gyrostat_run{run="$run"}, instance)').multi(True).include_all(True)
    )
    agents.current(models.VariableOption(True, ["All"], ["$__all"])).hide(models.VariableHide.HIDE_VARIABLE)
    return [source, run, agents, runbooks]


def _asked(name: str, label: str, query: str) -> dashboard.QueryVariable:
    made = dashboard.QueryVariable(name).label(label).datasource(DATASOURCE).definition(query)
    made.query({"qryType": 1, "query": query, "refId": "PrometheusVariableQueryEditor-VariableQuery"})
    return made.refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED).sort(models.VariableSort.ALPHABETICAL_ASC)


def _others() -> dashboard.DashboardLink:
    link = dashboard.DashboardLink("Gyrostat").type(models.DashboardLinkType.DASHBOARDS).tags([TAG])
    return link.as_dropdown(True).include_vars(True).keep_time(True)


def _annotations() -> list[dashboard.AnnotationQuery]:
    opened = f"sum by (kind, state) ({of('gyrostat_incidents_open')})"
    return [
        _annotation("Incidents", "red", opened, "{{kind}}", "{{state}}"),
        _annotation("Went back", "orange", f"changes({of('gyrostat_segment')}[$__interval]) > 0", "The run went back"),
        _annotation(
            "Interventions",
            "blue",
            f"increase({of('gyrostat_interventions_total')}[$__interval]) > 0",
            "Directive sent",
        ),
    ]


def _annotation(name: str, colour: str, expr: str, title: str, text: str = "") -> dashboard.AnnotationQuery:
    made = dashboard.AnnotationQuery().name(name).datasource(DATASOURCE).enable(True).icon_color(colour)
    return made.expr(expr).title_format(title).text_format(text).step("15s")
