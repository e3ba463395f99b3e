"""What must hold of what is seen: every NaN is found, no record is lost, and silence never reads as healthy."""

import math
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from random import Random

from histories import check_chain_and_replay, check_nothing_lost, entries, items
from processes import Place, ended, until
from prometheus_client.parser import text_string_to_metric_families

from gyrostat.wire import Record
from gyrostat_exporters.metrics import NAMES

Places = Callable[..., Place]
NONE_NOW = {
    "gyrostat_alerts", "gyrostat_incidents_open", "gyrostat_rule_armed", "gyrostat_control_requests_total",
    "gyrostat_incidents_ended_total", "gyrostat_rules_without_data", "gyrostat_alertmanager_alerts_total",
    "gyrostat_alertmanager_waiting", "gyrostat_otlp_items_total", "gyrostat_otlp_waiting",
}  # fmt: skip
SHIFTED = "import runpy, sys, time; time.{clock} = (lambda real: lambda: real() - 1000 * {unit})(time.{clock}); {rest}"


def test_every_nan_of_one_step_is_found(place: Places) -> None:
    """A hundred values that were not finite for one step, each skipped by the guard: a hundred of a hundred."""
    run = place()
    agent = run.agent()
    poison = ",".join(str(5 * i) for i in range(1, 101))
    trainer = run.trainer("--items", "510", "--poison", poison, "--once", "--every", "0")
    assert trainer.wait() == 0
    bad = [int(line.split()[2]) for line in run.done("record ") if line.endswith(" nan")]
    last = int(run.done("record ")[-1].split()[2])
    until(lambda: run.status().get("step", 0) == last, "the agent never read the last step")
    assert ended(agent) == 0
    fired = [e.step for e in entries(run.journal, "alert") if e.state == "firing"]
    assert len(bad) == 100 and fired == bad
    assert not entries(run.journal, "incident")


def test_no_record_is_lost_over_sigkills_of_either_side(place: Places) -> None:
    """Five kills of the trainer while it records, five of the agent while it reads: each told step is there."""
    run, draw = place(), Random(0)
    trainer, agent = run.trainer("--items", "1000000", "--every", "50", "--pace", "0.001"), run.agent()
    for kill in range(10):
        seen, told = len(run.done("began ")), len(run.lines())
        until(lambda seen=seen, told=told: run.lines()[told + draw.randrange(20, 60) :], "the trainer does not record")
        if kill % 2:
            agent.kill()
            agent.wait()
            agent = run.agent()
            run.watched(agent)
        else:
            trainer.kill()
            trainer.wait()
            trainer = run.trainer("--items", "1000000", "--every", "50", "--pace", "0.001")
            until(lambda seen=seen: len(run.done("began ")) > seen, "the trainer never began")
    trainer.kill()
    trainer.wait()
    told = {(life, int(step)) for _, life, step, _ in map(str.split, run.done("record "))}
    last = run.done("record ")[-1].split()

    def read() -> bool:
        return any(
            isinstance(i, Record) and (i.incarnation, i.step) == (last[1], int(last[2])) for i in items(run.journal)
        )

    until(read, "the agent never read the last step")
    assert ended(agent) == 0
    found = [(i.incarnation, i.step) for i in items(run.journal) if isinstance(i, Record)]
    assert len(found) == len(set(found)), "a record was read twice"
    assert not told - set(found), "records that were told are not in the journal"
    assert len(set(found)) - len(told) <= 6  # told to us only after it was recorded: a kill may fall in between
    check_nothing_lost(run.journal)
    check_chain_and_replay(run.journal)


def page(run: Place, path: str) -> tuple[int, str]:
    """Status and body of a page of the newest agent."""
    try:
        with urllib.request.urlopen(f"http://{run.status()['http']}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def shifted(run: Place, clock: str, unit: str, argv: list[str], rest: str) -> list[str]:
    """A command whose clock is a thousand seconds behind: it speaks from the past."""
    return [sys.executable, "-c", SHIFTED.format(clock=clock, unit=unit, rest=rest), *argv]


def test_pages_tell_blindness_and_metrics(place: Places) -> None:
    """Blind before the first Hello, ready while records flow, blind again when they stop; a NaN is a counter."""
    run = place()
    agent = run.agent("--listen", "127.0.0.1:0")
    until(lambda: run.status().get("http"), "the agent serves no page")
    assert page(run, "/healthz")[0] == 200
    status, body = page(run, "/readyz")
    assert status == 503 and "no trainer has spoken yet" in body
    assert metrics(run)["gyrostat_ready"][()] == 0.0
    trainer = run.trainer("--items", "40", "--poison", "10,20", "--gates", "30")
    until(lambda: run.done("gate 30"), "the trainer never came to its gate")
    until(lambda: page(run, "/readyz")[0] == 200, "the agent is never ready")
    until(lambda: metrics(run)["gyrostat_actions_total"].get(("skip_data", "done")) == 2.0, "two items passed over")
    found = metrics(run)
    assert found["gyrostat_nonfinite_total"]["loss", "trainer", "0", "nan"] == 4.0
    assert found["gyrostat_value"]["loss", "trainer", "0"] == 0.5
    assert all(math.isfinite(v) for rows in found.values() for v in rows.values())
    known = {f"{n}_total" if said.kind == "counter" else n for n, said in NAMES.items()}
    # A light trainer tells no counts, and is alone.
    assert {n for n in known - set(found) if "expert" not in n and "cluster" not in n} <= NONE_NOW
    assert set(found) <= known
    assert page(run, "/else")[0] == 404
    trainer.kill()
    trainer.wait()
    assert ended(agent) == 0


def metrics(run: Place) -> dict[str, dict[tuple[str, ...], float]]:
    """The page as Prometheus reads it: samples by name and label values in the table's order."""
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(page(run, "/metrics")[1]):
        said = NAMES[family.name]
        for sample in family.samples:
            assert set(sample.labels) == set(said.labels)
            found.setdefault(sample.name, {})[tuple(sample.labels[n] for n in said.labels)] = sample.value
    return found


def test_silence_is_blindness(place: Places) -> None:
    """A trainer that has said nothing for longer than it may: not ready, and why; it speaks again: ready."""
    run = place()
    argv = ["gyrostat", "agent", str(run.run), "--listen", ""]
    past = run.start(shifted(run, "time", "1", argv[1:], "from gyrostat_agent.cli import main; sys.exit(main())"))
    quiet = shifted(run, "time_ns", "10**9", run.trainer_argv("--items", "9")[1:], "sys.argv[:] = sys.argv[1:]; ")
    quiet[2] += "runpy.run_path(sys.argv[0], run_name='__main__')"
    trainer = run.start([*quiet[:3], *run.trainer_argv("--items", "1000", "--gates", "9")[1:]])
    until(lambda: run.done("gate 9"), "the trainer never came to its gate")
    until(lambda: run.status().get("step", 0) == 9, "the agent never read the ninth step")
    assert ended(past) == 0
    agent = run.agent("--listen", "127.0.0.1:0")
    run.watched(agent)
    status, body = page(run, "/readyz")
    assert status == 503 and "trainer 0 has been silent for 1" in body, body
    trainer.kill()
    trainer.wait()
    again = run.trainer("--items", "1000000")
    until(lambda: page(run, "/readyz")[0] == 200, "the agent is never ready")
    assert again.poll() is None
    assert ended(agent) == 0
