"""Sleeping until something happens: a file that grows, a ring, a descriptor, or time."""

import errno
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gyrostat_agent.sources import wakeup
from gyrostat_agent.sources.wakeup import POLL_SECONDS, WakeUp

LONG = 30.0


@pytest.fixture
def wake(tmp_path: Path) -> Iterator[WakeUp]:
    """Watches one folder."""
    made = WakeUp([str(tmp_path)])
    yield made
    made.close()


def slept(wake: WakeUp, seconds: float) -> float:
    began = time.monotonic()
    wake.wait(seconds)
    return time.monotonic() - began


@pytest.mark.parametrize("what", ["grow", "new", "move"])
def test_a_change_in_the_folder_ends_the_sleep(wake: WakeUp, tmp_path: Path, what: str) -> None:
    """A file that grows, is made or moved in; one that came before the sleep counts too."""
    act = {
        "grow": lambda: (tmp_path / "f").write_text("x"),
        "new": lambda: (tmp_path / "g").touch(),
        "move": lambda: (tmp_path.parent / "h").rename(tmp_path / "h"),
    }[what]
    (tmp_path / "f").touch()
    (tmp_path.parent / "h").touch()
    wake.wait(0.0)
    act()
    assert slept(wake, LONG) < LONG / 2
    assert slept(wake, 0.01) >= 0.009  # and is over with that


def test_a_ring_ends_the_sleep_from_another_thread(wake: WakeUp) -> None:
    """However often it was rung, once."""
    thread = threading.Thread(target=lambda: [wake.ring() for _ in range(100_000)])
    thread.start()
    assert slept(wake, LONG) < LONG / 2
    thread.join()
    wake.wait(0.0)
    wake.wait(0.0)
    assert slept(wake, 0.01) >= 0.009


def test_a_descriptor_ends_the_sleep_while_it_is_wanted(wake: WakeUp) -> None:
    """A verifier's pipe; once it is not wanted any more, its end wakes nobody."""
    reader, writer = os.pipe()
    wake.also({reader})
    os.write(writer, b"x")
    assert slept(wake, LONG) < LONG / 2
    wake.also(set())
    assert slept(wake, 0.01) >= 0.009
    wake.also({reader})
    os.close(reader)
    wake.also(set())
    os.close(writer)
    assert slept(wake, 0.01) >= 0.009


def test_where_there_is_no_inotify_it_looks_often(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No more watches to be had: says so, and sleeps 20 ms at most."""

    class Used:
        def __init__(self, nonblocking: bool) -> None:
            raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(wakeup, "INotify", Used)
    wake = WakeUp([str(tmp_path)])
    assert "Too many open files" in wake.polling and "20 ms" in wake.polling
    assert POLL_SECONDS * 0.9 <= slept(wake, LONG) < LONG / 2
    wake.ring()
    wake.wait(LONG)
    wake.close()


def test_a_folder_that_is_not_there_is_looked_for(tmp_path: Path) -> None:
    """It may come later: polling until then."""
    wake = WakeUp([str(tmp_path / "none")])
    assert "No such file" in wake.polling
    assert slept(wake, LONG) < LONG / 2
    wake.close()
