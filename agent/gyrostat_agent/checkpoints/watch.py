"""RootWatch: tells when something was made, renamed or deleted in the checkpoint root, where the system can tell.

Called by CheckpointSource at every poll. It only makes a look come sooner: a manifest that appears or goes inside a
folder, another host's write on a network file system, a root that cannot be watched, are all found by polling.
"""

import os
from collections.abc import Callable
from threading import Event, Thread

from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer
from watchdog.observers.api import BaseObserver

# Not "opened", "modified" and "closed": a file that is written to in the root would cause a look at every line.
_TELLING = frozenset({"created", "moved", "deleted"})


class RootWatch(FileSystemEventHandler):
    """Follows one folder; ``wake`` is called from a thread of watchdog's and must be fit for that."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._rang = Event()
        self._observer: BaseObserver | None = None
        self._watched: tuple[int, int] | None = None

    def rang(self) -> bool:
        """True where something has changed since the last call."""
        rang = self._rang.is_set()
        self._rang.clear()
        return rang

    def follow(self, root: str) -> None:
        """Watch the folder that is at ``root`` now: it may have come only now, or in place of another."""
        try:
            found = os.stat(root)
        except OSError:
            self._let_go()
            return
        if (found.st_dev, found.st_ino) != self._watched:
            self._let_go()
            self._watched = found.st_dev, found.st_ino
            self._observe(root)

    def close(self) -> None:
        """Stop watching; may wait half a second for watchdog's threads."""
        observer = self._observer
        self._let_go()
        if observer is not None:
            observer.join()

    def on_any_event(self, event: FileSystemEvent) -> None:
        """Ring, from watchdog's thread."""
        if event.event_type in _TELLING:
            self._rang.set()
            self._wake()

    def _let_go(self) -> None:
        """Stop watching without a wait: watchdog's own ``stop`` waits where a move is half seen."""
        observer, self._observer, self._watched = self._observer, None, None
        if observer is not None:
            Thread(target=observer.stop, name="unwatch", daemon=True).start()

    def _observe(self, root: str) -> None:
        observer = Observer()
        try:
            observer.schedule(self, root)
            observer.start()
        except (OSError, RuntimeError):  # no inotify, too many watches, no more threads: polling will do
            return
        self._observer = observer
