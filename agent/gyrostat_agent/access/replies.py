"""Replies: the agent's answers to words, from the loop's thread to the threads that wait for them.

An answer is the command's own entry, once it is journaled. Two that wait for the same word of the same person get one
answer each, in the order in which they asked.
"""

import threading
from collections.abc import Iterable, Mapping

from gyrostat_rules.entries import Entry, EntryKind


class Replies:
    """``heard`` is the loop's: it never waits, and costs nothing while nobody does."""

    def __init__(self) -> None:
        self._waiting: list[Reply] = []
        self._lock = threading.Lock()

    def expect(self, verb: str, arguments: Mapping[str, str]) -> "Reply":
        """Wait for the answer to this word, from before it is given."""
        reply = Reply(verb, dict(arguments))
        with self._lock:
            self._waiting.append(reply)
        return reply

    def forget(self, reply: "Reply") -> None:
        """Nobody waits for it any more."""
        with self._lock:
            if reply in self._waiting:
                self._waiting.remove(reply)

    def heard(self, entries: Iterable[Entry]) -> None:
        """Hand on what the agent has written of commands."""
        if not self._waiting:
            return
        for entry in entries:
            if entry.kind == EntryKind.COMMAND:
                self._hand_on(entry)

    def _hand_on(self, entry: Entry) -> None:
        with self._lock:
            for reply in self._waiting:
                if reply.verb == entry.subject and reply.arguments == entry.data.get("arguments"):
                    self._waiting.remove(reply)
                    reply.text = entry.text
                    reply.come.set()
                    return


class Reply:
    """One answer that is waited for. ``text`` is '' until it has come."""

    def __init__(self, verb: str, arguments: Mapping[str, str]) -> None:
        self.verb, self.arguments, self.text = verb, arguments, ""
        self.come = threading.Event()

    def wait(self, seconds: float) -> str:
        """The answer, or '' where none comes in time."""
        self.come.wait(seconds)
        return self.text
