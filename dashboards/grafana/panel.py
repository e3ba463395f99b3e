"""Panel: what one panel shows, and how; built with Grafana's own builder.

The builder leaves out what Grafana's editor would fill in (refId, id, the reduction of a stat, places that fit): all of
that is given here, so that a board looks alike before and after somebody has opened it.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from grafana_foundation_sdk.builders import common, dashboard, heatmap, prometheus, stat, statetimeline, timeseries
from grafana_foundation_sdk.models import common as shared
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode
from query import Query

LINES, STAT, STATES, HEAT = "lines", "stat", "states", "heat"
DATASOURCE = shared.DataSourceRef("prometheus", "${datasource}")
KIND_RUNBOOK, RUN_BOARD = "kind's runbook", "run's board"
_OPENED = {
    KIND_RUNBOOK: ("Runbook: ${__field.labels.kind}", "${runbooks}/${__field.labels.kind}.md"),
    RUN_BOARD: ("Run: ${__field.labels.run}", "/d/gyrostat-run?var-run=${__field.labels.run}&${__url_time_range}"),
}
_REF_IDS = "ABCDEFGH"
Place = tuple[int, int]  # column and line of the upper left corner, in a grid of 24 columns


class Panel(NamedTuple):
    """One panel. ``unit`` is Grafana's id of it; ``words`` put a text and a colour for a value.

    ``steps`` are the values from which on another colour holds; ``low`` and ``high`` are the axis' ends. ``runbook``
    names the page that the panel links to.
    ``opens`` is what a click on one of its series opens: KIND_RUNBOOK or RUN_BOARD.
    """

    title: str
    description: str
    unit: str
    queries: tuple[Query, ...]
    kind: str = LINES
    width: int = 8
    height: int = 8
    words: Mapping[str, tuple[str, str]] = {}
    steps: tuple[tuple[float, str], ...] = ()
    low: float | None = None
    high: float | None = None
    runbook: str = ""
    opens: str = ""


def lines(title: str, unit: str, description: str, *queries: Query, **more: Any) -> Panel:
    """Curves over time."""
    return Panel(title, description, unit, queries, LINES, **more)


def number(title: str, unit: str, description: str, query: Query, **more: Any) -> Panel:
    """The newest value in large, over its curve."""
    return Panel(title, description, unit, (query,), STAT, **{"width": 4, "height": 5, **more})


def states(title: str, description: str, query: Query, **more: Any) -> Panel:
    """A bar a series, coloured by its value."""
    return Panel(title, description, "short", (query,), STATES, **more)


def heat(title: str, unit: str, description: str, query: Query, **more: Any) -> Panel:
    """A row a series, a cell a moment, green where the value is low: Grafana turns this scheme round by itself."""
    return Panel(title, description, unit, (query,), HEAT, **{"width": 12, "height": 12, **more})


def build(panel: Panel, number: int, place: Place) -> Any:
    """Grafana's builder of it, numbered and placed."""
    made = _KINDS[panel.kind](panel)
    made.id(number).title(panel.title).description(panel.description).datasource(DATASOURCE).unit(panel.unit)
    made.grid_pos(models.GridPos(panel.height, panel.width, *place))
    for ref_id, query in zip(_REF_IDS, panel.queries, strict=False):
        made.with_target(_target(query, ref_id))
    if panel.words:
        results = {value: models.ValueMappingResult(*word) for value, word in panel.words.items()}
        made.mappings([models.ValueMap(results)])
    if panel.steps:
        made.thresholds(_thresholds(panel))
    if panel.low is not None:
        made.min(panel.low)
    if panel.high is not None:
        made.max(panel.high)
    if panel.runbook:
        made.links([runbook(panel.runbook)])
    if panel.opens:
        title, url = _OPENED[panel.opens]
        made.data_links([dashboard.DashboardLink(title).url(url)])
    return made


def runbook(name: str) -> dashboard.DashboardLink:
    """A link to a runbook, at the address that the board's variable names."""
    link = dashboard.DashboardLink(f"Runbook: {name}").type(models.DashboardLinkType.LINK)
    return link.url(f"${{runbooks}}/{name}.md").target_blank(True)


def _target(query: Query, ref_id: str) -> prometheus.Dataquery:
    made = prometheus.Dataquery().expr(query.expr).legend_format(query.legend)
    return made.ref_id(ref_id).datasource(DATASOURCE).range()


def _thresholds(panel: Panel) -> dashboard.ThresholdsConfig:
    steps = [models.Threshold(value, colour) for value, colour in panel.steps]
    base = models.Threshold(None, "green")
    return dashboard.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps([base, *steps])


def _lines(panel: Panel) -> timeseries.Panel:
    legend = common.VizLegendOptions().show_legend(True).display_mode(shared.LegendDisplayMode.LIST)
    made = timeseries.Panel().legend(legend.placement(shared.LegendPlacement.BOTTOM).calcs([]))
    tooltip = common.VizTooltipOptions().mode(shared.TooltipDisplayMode.MULTI).sort(shared.SortOrder.DESCENDING)
    return made.line_width(1).fill_opacity(0).show_points(shared.VisibilityMode.AUTO).tooltip(tooltip)


def _stat(panel: Panel) -> stat.Panel:
    made = stat.Panel().reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).values(False).fields(""))
    colour = shared.BigValueColorMode.BACKGROUND if panel.steps or panel.words else shared.BigValueColorMode.NONE
    return made.color_mode(colour).graph_mode(shared.BigValueGraphMode.AREA)


def _states(panel: Panel) -> statetimeline.Panel:
    legend = common.VizLegendOptions().show_legend(False).display_mode(shared.LegendDisplayMode.LIST)
    made = statetimeline.Panel().legend(legend.placement(shared.LegendPlacement.BOTTOM).calcs([]))
    return made.show_value(shared.VisibilityMode.NEVER).row_height(0.9).merge_values(True)


def _heat(panel: Panel) -> heatmap.Panel:
    colour = heatmap.HeatmapColorOptions().mode(HeatmapColorMode.SCHEME).scheme("RdYlGn").steps(64)
    colour.min(panel.low or 0.0).max(1.0 if panel.high is None else panel.high).reverse(False)
    made = heatmap.Panel().calculate(False).color(colour).cell_gap(0).show_legend()
    made.filter_values(heatmap.FilterValueRange().le(-1))  # else a cell of 0, the best there is, stays empty
    return made.cell_values(heatmap.CellValues().unit(panel.unit))


_KINDS: Mapping[str, Any] = {LINES: _lines, STAT: _stat, STATES: _states, HEAT: _heat}
