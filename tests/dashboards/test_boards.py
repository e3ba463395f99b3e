"""The Grafana boards: fresh, laid out so that nothing lies on anything else, and about metrics that there are."""

import importlib.util
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from board_files import DASHBOARDS, EXPOSED, OF_PROMETHEUS, Shown, boards, every_panel, names_in, recorded, selectors_in

ROOT = DASHBOARDS.parent
RUNBOOKS = ROOT / "rules" / "gyrostat_rules" / "runbooks"
UNITS = {"none", "short", "percent", "percentunit", "s", "bytes", "Bps", "ops", "rps", "reqps", "celsius", "watt"}
OF_TARGETS = {"job", "instance", "run"}  # labels that Prometheus or a recording rule gives
BOARDS = ["agent", "fleet", "machines", "moe", "rl", "run"]
EVERY = [pytest.param(shown, id=shown.name) for shown in every_panel()]


def test_the_boards_are_those_and_fresh(tmp_path: Path) -> None:
    """What is checked in is what the program makes; a file that was edited by hand is found."""
    if importlib.util.find_spec("grafana_foundation_sdk") is None:
        pytest.skip("grafana-foundation-sdk is not installed (it needs Python 3.11): pip install -e '.[dev]'")
    assert sorted(boards()) == [f"gyrostat-{name}" for name in BOARDS]
    program = [sys.executable, "-B", str(DASHBOARDS / "grafana" / "generate.py")]
    found = subprocess.run([*program, "--check"], capture_output=True, encoding="utf-8", check=False)
    assert found.returncode == 0, found.stderr
    subprocess.run([*program, "--folder", str(tmp_path)], check=True)
    (tmp_path / "gyrostat-run.json").write_text("{}")
    (tmp_path / "gyrostat-gone.json").write_text("{}")
    edited = subprocess.run([*program, "--check", "--folder", str(tmp_path)], capture_output=True, encoding="utf-8")
    assert edited.returncode == 1 and edited.stderr.count("is not what generate.py makes") == 2


@pytest.mark.parametrize("board", boards().values(), ids=boards())
def test_panels_lie_in_the_grid_and_on_nothing_else(board: dict[str, Any]) -> None:
    """24 columns, each cell of them once; ids once; under each heading something."""
    cells: Counter[tuple[int, int]] = Counter()
    for panel in board["panels"]:
        place = panel["gridPos"]
        assert place["x"] >= 0 and place["x"] + place["w"] <= 24, panel["title"]
        lines, columns = range(place["y"], place["y"] + place["h"]), range(place["x"], place["x"] + place["w"])
        cells.update((x, y) for x in columns for y in lines)
    assert max(cells.values()) == 1
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    assert not any(a["type"] == b["type"] == "row" for a, b in zip(board["panels"], board["panels"][1:], strict=False))


@pytest.mark.parametrize("shown", EVERY)
def test_every_panel_says_what_it_is(shown: Shown) -> None:
    """A title once on its board, a description, a unit, and a source that the board lets one choose."""
    panel = shown.panel
    assert panel["title"] and panel["description"].endswith(".")
    assert panel["fieldConfig"]["defaults"]["unit"] in UNITS
    assert [p["title"] for p in boards()[shown.board]["panels"]].count(panel["title"]) == 1
    assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    assert panel["targets"] and [t["refId"] for t in panel["targets"]] == list("ABCDEFGH"[: len(panel["targets"])])
    assert panel["type"] != "stat" or panel["options"]["reduceOptions"]["calcs"] == ["lastNotNull"]
    assert panel["type"] != "heatmap" or panel["options"]["filterValues"]["le"] < 0  # a share of 0 is a cell too


@pytest.mark.parametrize("shown", EVERY)
def test_every_query_asks_for_what_there_is(shown: Shown) -> None:
    """Metrics of the agent's table or of the recording rules, by labels that they have, and of the chosen run."""
    for expr in shown.exprs:
        found = names_in(expr)
        assert found and found <= set(EXPOSED) | recorded() | OF_PROMETHEUS
        for name, labels in selectors_in(expr):
            assert set(labels) <= {*EXPOSED[name].labels, *OF_TARGETS}, name
        for window in re.findall(r"rate\([^[]*\[([^]]*)\]", expr):
            assert window == "$__rate_interval"
        if shown.board != "gyrostat-fleet":
            assert expr.count('instance=~"$instance"') >= len(found)


@pytest.mark.parametrize("shown", EVERY)
def test_a_runbook_that_is_linked_is_there(shown: Shown) -> None:
    """The link opens a page of the rules' runbooks, at the address that the board was given."""
    for link in shown.panel.get("links") or []:
        name = re.fullmatch(r"\$\{runbooks\}/(\w+)\.md", link["url"])
        assert name is not None and (RUNBOOKS / f"{name[1]}.md").is_file()


def test_a_click_on_an_incident_opens_the_runbook_of_its_kind() -> None:
    """Every kind that a pack's rule opens has a page of its name; a click on a run opens a board that there is."""
    opened = {
        link["url"] for shown in every_panel() for link in shown.panel["fieldConfig"]["defaults"].get("links") or []
    }
    assert "${runbooks}/${__field.labels.kind}.md" in opened
    assert {url.partition("?")[0] for url in opened if url.startswith("/d/")} == {"/d/gyrostat-run"}
    packs = [path.read_text(encoding="utf-8") for path in (ROOT / "rules" / "gyrostat_rules" / "packs").glob("*.yaml")]
    kinds = {kind for text in packs for kind in re.findall(r"^ +incident: (\w+)$", text, re.MULTILINE)}
    assert len(kinds) >= 7 and all((RUNBOOKS / f"{kind}.md").is_file() for kind in kinds)


@pytest.mark.parametrize("name", BOARDS)
def test_boards_have_their_variables_and_the_incidents_of_the_run(name: str) -> None:
    """A source and an address for runbooks; where one run is looked at: it, its agents, and what happened to it."""
    board = boards()[f"gyrostat-{name}"]
    variables = [v["name"] for v in board["templating"]["list"]]
    noted = {a["name"]: a["expr"] for a in (board.get("annotations") or {}).get("list") or []}
    assert variables == (
        ["datasource", "runbooks"] if name == "fleet" else ["datasource", "run", "instance", "runbooks"]
    )
    assert name == "fleet" or list(noted) == ["Incidents", "Went back", "Interventions"]
    assert all(names_in(expr) <= set(EXPOSED) for expr in noted.values())
    assert board["schemaVersion"] >= 39 and board["tags"] == ["gyrostat"]


def test_provisioning_names_a_source_and_a_folder() -> None:
    """Grafana's own keys, as its documentation lists them."""
    found = DASHBOARDS / "grafana" / "provisioning"
    source = yaml.safe_load((found / "datasources" / "prometheus.yaml").read_text())
    folder = yaml.safe_load((found / "dashboards" / "gyrostat.yaml").read_text())
    assert source["apiVersion"] == folder["apiVersion"] == 1
    assert source["datasources"][0]["type"] == "prometheus" and source["datasources"][0]["url"]
    assert folder["providers"][0]["type"] == "file" and folder["providers"][0]["options"]["path"]
