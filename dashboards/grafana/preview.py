"""Draw a board as an SVG, from its JSON's places and what a Prometheus answers. This is no Grafana, and looks plainer.

    python dashboards/grafana/preview.py gyrostat-moe http://127.0.0.1:9090 > moe.svg

It shows what lies where and whether there is data: curves, newest numbers, rows of coloured cells. A third word is how
many seconds to show, 300 unless told otherwise, a fourth their end in Unix time. It wants the standard library alone.
"""

import json
import re
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

COLUMN, LINE, HEAD = 50, 24, 22  # pixels of a grid cell, and of a panel's title
COLOURS = ("#3274d9", "#e0752d", "#37872d", "#a352cc", "#c4162a", "#8f3bb8", "#1f78a4", "#b877d9")
JSON = Path(__file__).resolve().parent / "json"
Curve = list[tuple[float, float]]  # places from 0 to 1, and values


class Asked(NamedTuple):
    """The address of the Prometheus, and the time to show, Unix seconds."""

    server: str
    start: float
    end: float


def main() -> int:
    """Draw it to stdout; returns the exit status, 2 where the board or the server is not to be had."""
    if len(sys.argv) not in (3, 4, 5):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        board = json.loads((JSON / f"{sys.argv[1]}.json").read_text(encoding="utf-8"))
        seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 300.0
        end = float(sys.argv[4]) if len(sys.argv) > 4 else time.time()
        print(_drawn(board, Asked(sys.argv[2], end - seconds, end)))
    except (OSError, ValueError) as error:
        print(f"preview: {error}; give a file's name of {JSON} and the address of a Prometheus", file=sys.stderr)
        return 2
    return 0


def _drawn(board: dict[str, Any], asked: Asked) -> str:
    panels = board["panels"]
    height = max(p["gridPos"]["y"] + p["gridPos"]["h"] for p in panels) * LINE
    size = f'width="{24 * COLUMN}" height="{height}" font-family="sans-serif"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size}><rect width="100%" height="100%" fill="#f4f5f5"/>'
    return "\n".join([head, *("".join(_panel(panel, asked)) for panel in panels), "</svg>"])


def _panel(panel: dict[str, Any], asked: Asked) -> Iterator[str]:
    place = panel["gridPos"]
    x, y, w, h = place["x"] * COLUMN, place["y"] * LINE, place["w"] * COLUMN, place["h"] * LINE
    title = escape(panel["title"])
    if panel["type"] == "row":
        yield f'<text x="{x + 8}" y="{y + 17}" font-size="14" font-weight="bold">{title}</text>'
        return
    box = f'width="{w - 4}" height="{h - 4}" fill="white" stroke="#ccc"'
    yield f'<g transform="translate({x},{y})"><rect x="2" y="2" {box}/>'
    yield f'<text x="8" y="17" font-size="12">{title}</text>'
    curves = [curve for target in panel["targets"] for curve in _answer(target["expr"], asked)]
    inside = (w - 16, h - HEAD - 12)
    drawn = {"stat": _number, "heatmap": _cells, "state-timeline": _cells}.get(panel["type"], _lines)
    yield f'<g transform="translate(8,{HEAD + 4})">'
    yield from drawn(panel, curves, *inside) if curves else ('<text y="30" font-size="11" fill="#999">no data</text>',)
    yield "</g></g>"


def _answer(expr: str, asked: Asked) -> list[Curve]:
    """What the server answers, as curves; the board's variables stand for everything."""
    seconds = asked.end - asked.start
    plain = re.sub(r"\$\w+", lambda v: {"$__rate_interval": "30s", "$__range": f"{seconds:.0f}s"}.get(v[0], ".*"), expr)
    span = {"query": plain, "start": str(asked.start), "end": str(asked.end), "step": str(max(1.0, seconds / 120))}
    url = f"{asked.server}/api/v1/query_range?{urllib.parse.urlencode(span)}"
    with urllib.request.urlopen(url, timeout=20) as answer:  # noqa: S310  # the address is the caller's own
        found = json.load(answer)["data"]["result"]
    return [[((float(at) - asked.start) / seconds, float(value)) for at, value in one["values"]] for one in found]


def _lines(panel: dict[str, Any], curves: list[Curve], width: int, height: int) -> Iterator[str]:
    values = [value for curve in curves for _, value in curve]
    low, high = min(values), max(values)
    if high == low:
        low, high = low - 0.5, high + 0.5
    for number, curve in enumerate(curves):
        points = " ".join(f"{at * width:.1f},{(high - v) / (high - low) * height:.1f}" for at, v in curve)
        colour = COLOURS[number % len(COLOURS)]
        yield f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.2"/>'
    for value, y in ((high, 9), (low, height)):
        yield f'<text y="{y}" font-size="9" fill="#777">{value:.4g}</text>'


def _number(panel: dict[str, Any], curves: list[Curve], width: int, height: int) -> Iterator[str]:
    newest = max(curves, key=lambda curve: curve[-1][0])[-1][1]
    shown = f"{newest:.0%}" if panel["fieldConfig"]["defaults"]["unit"] == "percentunit" else f"{newest:.4g}"
    shown = _words(panel).get(f"{newest:.0f}", {}).get("text", shown)
    yield f'<text x="{width / 2}" y="{height * 0.65}" font-size="30" text-anchor="middle">{escape(shown)}</text>'


def _cells(panel: dict[str, Any], curves: list[Curve], width: int, height: int) -> Iterator[str]:
    colour, words = panel.get("options", {}).get("color") or {}, _words(panel)
    high, tall = colour.get("max", 1.0), height / len(curves)
    for row, curve in enumerate(curves):
        wide = width * (curve[-1][0] - curve[0][0]) / max(1, len(curve) - 1) + 0.6
        for at, value in curve:
            good = 1 - min(1.0, value / high)  # Grafana's schemes of red and green are green at their low end
            fill = words.get(f"{value:.0f}", {}).get("color") or f"hsl({120 * good:.0f},60%,50%)"
            box = f'width="{min(wide, (1 - at) * width):.1f}" height="{tall:.1f}"'
            yield f'<rect x="{at * width:.1f}" y="{row * tall:.1f}" {box} fill="{fill}"/>'


def _words(panel: dict[str, Any]) -> dict[str, dict[str, str]]:
    """What stands for a value, where the panel says so."""
    mappings = panel["fieldConfig"]["defaults"].get("mappings") or [{"options": {}}]
    found: dict[str, dict[str, str]] = mappings[0]["options"]
    return found


if __name__ == "__main__":
    sys.exit(main())
