"""The whole of it on one machine: a run that breaks, its agent, a real Prometheus and a real Alertmanager.

    make stack                                  until Ctrl-C; says where to look
    make stack-test                             until it is shown that the one on call is told and let go again
    python dashboards/stack/stack.py --test --keep FOLDER

All of it listens at loopback, at free ports, in a new folder. The run is the reference trainer's; at step 20 a NaN is
applied, the agent goes back to a certified checkpoint, and 80 steps later it is over. Exit status of --test: 0 where
each link of the chain was seen, 1 where one was not, with the logs' last words; 2 where a program is missing.
"""

import argparse
import contextlib
import json
import shutil
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import layout
from layout import Ports
from onduty import RUNBOOKS, Notified, OnDuty
from programs import ALERTMANAGER, PROMETHEUS, MissingError, Started, program, python

DEADLINE = 300.0  # seconds for each link; the slowest, the run's first twenty steps, takes about ten
SHOWN, NOT_SHOWN, MISSING = 0, 1, 2


class Stack:
    """What was started, and what has been heard."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.ports, self.began = folder, Ports.free(), time.monotonic()
        self.duty = OnDuty(self._tell)
        layout.write(folder, self.ports, self.duty.url)
        self.started: list[Started] = []

    def start(self) -> None:
        """Everything, in the order in which each finds the one before."""
        at, folder = self.ports, self.folder
        self._start("alertmanager", program(ALERTMANAGER), f"--config.file={folder}/alertmanager.yaml",
                    f"--storage.path={folder}/alertmanager-data", f"--web.listen-address=127.0.0.1:{at.alertmanager}",
                    "--cluster.listen-address=")  # fmt: skip
        self._start(
            "prometheus",
            program(PROMETHEUS),
            f"--config.file={folder}/prometheus.yaml",
            f"--storage.tsdb.path={folder}/prometheus-data",
            f"--web.listen-address=127.0.0.1:{at.prometheus}",
        )
        trainer = ["gyrostat_reference", "--checkpoints", f"{folder}/checkpoints", "--steps", "100", "--no-guard"]
        trainer += ["--patience", "30", "--poison-at-step", "20"]
        self._start("run", *python("-m", "gyrostat_agent", "run", "--run-dir", f"{folder}/run", "--run", "stack"),
                    "--mode", "act", "--no-approvals", "--listen", f"127.0.0.1:{at.agent}",
                    "--alertmanager", f"http://127.0.0.1:{at.alertmanager}",
                    "--runbook-base", f"{self.duty.url}{RUNBOOKS}", "--", *python("-m", *trainer))  # fmt: skip

    def say(self, line: str) -> None:
        """A line with its time, in seconds since the beginning."""
        print(f"{time.monotonic() - self.began:6.1f} s  {line}", flush=True)

    def close(self) -> None:
        """End all, the last one first."""
        for one in reversed(self.started):
            one.end()
        self.duty.close()

    def _start(self, name: str, *words: str) -> None:
        self.started.append(Started(name, words, self.folder))

    def _tell(self, one: Notified) -> None:
        where = f" of incident {one.labels['incident']}" if "incident" in one.labels else ""
        self.say(f"{one.receiver}: {one.status} {one.name}{where}: {one.notes.get('summary', '')}")


def shown(stack: Stack) -> None:
    """Each link of the chain, waited for in its order; raises AssertionError that says which is missing."""
    seen: dict[str, Any] = {}
    for what, link in LINKS.items():
        seen[what] = _until(stack, what, lambda link=link: link(stack))
        stack.say(f"seen: {what}")


def _status(stack: Stack) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((stack.folder / "run" / "agent" / "status.json").read_text())
    return found


def _get(port: int, path: str, **words: str) -> Any:
    query = f"?{urllib.parse.urlencode(words)}" if words else ""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}{query}", timeout=5) as answer:
        return json.load(answer)


def _prometheus(stack: Stack, expr: str) -> Any:
    return _get(stack.ports.prometheus, "/api/v1/query", query=expr)["data"]["result"]


def _alerts(stack: Stack) -> list[Any]:
    return [a for a in _get(stack.ports.alertmanager, "/api/v2/alerts") if "incident" in a["labels"]]


def _runbook(stack: Stack) -> bool:
    told = stack.duty.first("firing")
    base, _, path = (told.notes.get("runbook_url", "") if told is not None else "").partition(RUNBOOKS)
    if base != stack.duty.url:  # of the web nothing is opened here
        return False
    with urllib.request.urlopen(f"http://127.0.0.1:{stack.duty.port}{RUNBOOKS}{path}", timeout=5) as page:
        return bool(page.read().startswith(b"# "))


# What happens, in its order; each is asked until it is true.
LINKS: dict[str, Callable[[Stack], Any]] = {
    "the agent watches the run": lambda s: _status(s)["step"] >= 1,
    "Prometheus scrapes it": lambda s: _prometheus(s, 'gyrostat_run{run="stack"} == 1'),
    "a value is not finite": lambda s: _prometheus(s, "sum(gyrostat_nonfinite_total) > 0"),
    "the agent opens an incident": lambda s: _status(s)["incidents"] >= 1,
    "Alertmanager is told of it": lambda s: _alerts(s) or s.duty.first("firing"),
    "the webhook is called: firing": lambda s: s.duty.first("firing"),
    "its runbook can be opened": _runbook,
    "the agent has gone back": lambda s: _prometheus(s, 'sum(gyrostat_actions_total{state="done"}) > 0'),
    "the webhook is called: resolved": lambda s: s.duty.first("resolved"),
    "nothing is open any more": lambda s: not _status(s)["open"] and not _alerts(s),
}


def _until(stack: Stack, what: str, condition: Callable[[], Any]) -> Any:
    end, why = time.monotonic() + DEADLINE, ""
    while time.monotonic() < end:
        for one in stack.started[:2]:
            if one.status is not None:
                raise AssertionError(f"{one.name} has ended with {one.status}:\n{one.last_words()}")
        try:
            if answer := condition():
                return answer
        except (OSError, KeyError, ValueError) as error:  # not there yet
            why = f" ({error})"
        time.sleep(0.2)
    tails = "\n".join(f"--- {one.name}\n{one.last_words()}" for one in stack.started)
    raise AssertionError(f"not seen within {DEADLINE:.0f} s: {what}{why}\n{tails}")


def _wait(stack: Stack) -> None:
    at = stack.ports
    for name, port in (("agent", at.agent), ("Prometheus", at.prometheus), ("Alertmanager", at.alertmanager)):
        stack.say(f"{name:14} http://127.0.0.1:{port}")
    stack.say(f"live           gyrostat top {stack.folder / 'run'}")
    stack.say(f"logs           {stack.folder}; Ctrl-C ends it all")
    while True:
        time.sleep(3600)


@contextlib.contextmanager
def _folder(keep: str) -> Iterator[Path]:
    if keep:
        Path(keep).mkdir(mode=0o700, parents=True)
        yield Path(keep).resolve()
        return
    folder = Path(tempfile.mkdtemp(prefix="gyrostat-stack-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> int:
    """Start it; wait, or show the chain."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--test", action="store_true", help="show that the chain holds, and end")
    parser.add_argument("--keep", default="", metavar="FOLDER", help="a new folder that stays; else a temporary one")
    given = parser.parse_args()
    try:
        program(ALERTMANAGER), program(PROMETHEUS)
        with _folder(given.keep) as folder, contextlib.closing(Stack(folder)) as stack:
            stack.start()
            shown(stack) if given.test else _wait(stack)
    except MissingError as error:
        print(f"stack: {error}", file=sys.stderr)
        return MISSING
    except FileExistsError as error:
        print(f"stack: {error.filename} is there already; give a new folder", file=sys.stderr)
        return MISSING
    except AssertionError as error:
        print(f"stack: {error}", file=sys.stderr)
        return NOT_SHOWN
    except KeyboardInterrupt:
        return SHOWN if not given.test else 130
    print("shown: from a NaN to the one on call, and back")
    return SHOWN


if __name__ == "__main__":
    sys.exit(main())
