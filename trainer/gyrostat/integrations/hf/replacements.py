"""Replacements: attributes of the trainer that are watched while it trains, and put back as they were.

Set on the instance, never on its class: another trainer of the same process is none of our business.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

_NOTHING = object()


class Replacements:
    """Instance attributes that stand in for others until ``undo``."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []

    def watch(self, owner: Any, name: str, seen: Callable[[Any], None]) -> bool:
        """Call ``seen`` with all that ``owner.name(...)`` returns; False where there is no such method.

        The method itself runs as ever: its arguments, its result and what it raises are untouched. ``seen`` must
        not raise.
        """
        original = getattr(owner, name, None)
        if not callable(original):
            return False

        @wraps(original)
        def watched(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            seen(result)
            return result

        self.put(owner, name, watched)
        return True

    def put(self, owner: Any, name: str, value: Any) -> None:
        """Set ``owner.name`` until ``undo``."""
        before = vars(owner).get(name, _NOTHING)
        setattr(owner, name, value)

        def back() -> None:
            if vars(owner).get(name) is not value:
                return  # somebody else has replaced it since: theirs calls ours, and is not ours to remove
            if before is _NOTHING:
                delattr(owner, name)
            else:
                setattr(owner, name, before)

        self._undo.append(back)

    def keep(self, undo: Callable[[], None]) -> None:
        """Call ``undo`` at the end too: for hooks, which have a remove of their own."""
        self._undo.append(undo)

    def undo(self) -> None:
        """Put everything back, the last first."""
        while self._undo:
            self._undo.pop()()
