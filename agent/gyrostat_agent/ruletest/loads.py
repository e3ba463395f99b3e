"""Loads: expert counts by step, from the share of the busiest expert and the number of those that get nothing."""

from gyrostat.wire import ExpertLoad
from gyrostat_agent.ruletest.draft import ExpertsDraft
from gyrostat_agent.ruletest.notation import spelled

Values = tuple[float | None, ...]


class Loads:
    """The expert counts of a test; even where nothing else is said."""

    def __init__(self, said: ExpertsDraft | None) -> None:
        self.said = said
        self.rows = dict[tuple[int, int], tuple[Values, Values]]()
        for skew in said.skew if said else ():
            seed = f"experts/{skew.layer}/{skew.loop}"
            top, dead = (spelled(text, seed).values if text is not None else () for text in (skew.top, skew.dead))
            self.rows[skew.layer, skew.loop] = top, dead

    def at(self, number: int) -> ExpertLoad | None:
        """The counts of the row of that number; none where a skew has a gap there."""
        said = self.said
        if said is None or any(_is_gap(v, number) for both in self.rows.values() for v in both):
            return None
        places = ((layer, loop) for layer in range(said.layers) for loop in range(said.loops))
        counts = tuple(
            count for place in places for count in self._counts(said, *self.rows.get(place, ((), ())), number)
        )
        return ExpertLoad(said.layers, said.loops, said.count, counts)

    def _counts(self, said: ExpertsDraft, top: Values, dead: Values, number: int) -> list[int]:
        """The first expert is the busiest, and the last ones are dead; the others share what is left evenly."""
        gone = max(0, min(int(_value(dead, number, 0.0)), said.count - 1))
        alive = said.count - gone
        busiest = min(max(_value(top, number, 1.0 / alive), 0.0), 1.0)
        rest = [round(said.tokens * (1.0 - busiest) / (alive - 1))] * (alive - 1) if alive > 1 else []
        return [max(0, said.tokens - sum(rest)), *rest, *[0] * gone]


def _is_gap(values: Values, number: int) -> bool:
    return number < len(values) and values[number] is None


def _value(values: Values, number: int, otherwise: float) -> float:
    value = values[number] if number < len(values) else None
    return otherwise if value is None else value
