"""The columns of one rank's records: they grow as names turn up, and lay a step's values out as a record body.

Called by Telemetry alone. A trainer says the same names in the same order nearly every step, so the layout of
each set of names is made once and kept: a step then costs one look-up and one ``pack``.
"""

import math
import struct
from collections.abc import Callable
from typing import NamedTuple

from gyrostat.wire.records import MAX_COLUMNS, Column, Schema

_MOST_LAYOUTS = 64  # sets of names remembered; a trainer that invents more makes them anew
PLAIN = frozenset((float, int, bool))  # what packs as it is: nothing to convert, nothing to wait for


class _Layout(NamedTuple):
    """How the values of one set of names are packed; ``order`` is None where they come in column order."""

    pack: Callable[..., bytes]
    mask: bytes
    order: tuple[str, ...] | None
    left_out: int


class Columns:
    """Names seen so far and the schema that lists them. ``schema`` is a new one whenever they have grown."""

    def __init__(self, units: dict[str, str]) -> None:
        self._units = units
        self._index: dict[str, int] = {}
        self._layouts: dict[tuple[str, ...], _Layout] = {}
        self.schema = Schema(0, ())
        self.left_out = 0  # values beyond the largest number of columns

    def body(self, values: dict[str, float]) -> bytes:
        """Record body of host numbers: presence mask, then a float64 a column."""
        layout = self._layouts.get(tuple(values)) or self._lay_out(tuple(values))
        pack, mask, order, left_out = layout
        try:
            if order is None:
                return pack(mask, *values.values())
            self.left_out += left_out
            return pack(mask, *[values[name] for name in order])
        except struct.error:
            return pack(mask, *[_bounded(values[name]) for name in order or values])

    def _lay_out(self, names: tuple[str, ...]) -> _Layout:
        """Make and keep the layout of ``names``: a mask, and a value or eight zero bytes for each column."""
        self._grow(names)
        known = [name for name in names if name in self._index]
        order = tuple(sorted(known, key=self._index.__getitem__))
        mask = sum(1 << self._index[name] for name in order)
        width = (len(self._index) + 7) // 8
        present = set(order)
        cells = "".join("d" if name in present else "8x" for name in self._index)
        if len(self._layouts) >= _MOST_LAYOUTS:
            self._layouts.clear()
        layout = _Layout(
            struct.Struct(f"<{width}s{cells}").pack,
            mask.to_bytes(width, "little"),
            None if order == names else order,
            len(names) - len(order),
        )
        self._layouts[names] = layout
        return layout

    def _grow(self, names: tuple[str, ...]) -> None:
        new = [name for name in names if name not in self._index][: MAX_COLUMNS - len(self._index)]
        if not new:
            return
        for name in new:
            self._index[name] = len(self._index)
        self._layouts.clear()  # they lack the new columns
        columns = tuple(Column(name, self._units.get(name, "")) for name in self._index)
        self.schema = Schema(self.schema.number + 1, columns)


def _bounded(value: float) -> float:
    """An integer beyond float64 is infinite, as it would be had it been counted in floats."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
