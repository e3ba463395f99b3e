"""The GPUs' records in the engine: rules see them, and they change nothing about the run that they stand beside."""

import time

import pytest
from nvml_runs import Looking, StandIn, records

from gyrostat.wire import ExpertLoad, Record
from gyrostat_agent.cli.options import builtin
from gyrostat_rules.engine import Engine
from gyrostat_rules.entries import Entry
from gyrostat_rules.inputs import Batch, Command, Item, Pack, Tick, Verb

NAN = float("nan")
PACK = """
pack: gpus
groups:
  - name: hardware
    rules:
      - alert: GpuLost
        detector: level
        with: {series: [gpu_lost], above: 0.5, needed: 1, of: 1}
        severity: critical
        incident: hardware
        annotations: {summary: "GPU {rank} is lost"}
        runbook_url: stall
      - alert: GpuHot
        detector: level
        with: {series: [gpu_throttle_hardware_thermal], above: 0.5, needed: 1, of: 1}
        severity: warning
        annotations: {summary: "GPU {rank} is too hot"}
        runbook_url: stall
playbooks:
  - incident: hardware
    rungs:
      - {remedy: page}
"""


def test_a_rule_sees_a_lost_gpu_at_the_step_it_was_working_on(gpus: StandIn, looking: Looking) -> None:
    """A GPU that is lost while step 8 runs is an incident of step 8, whose is said."""
    gpus.set(count=2)
    engine = _engine(PACK)
    for step in range(8):
        _feed(engine, 100.0 + step, _trained(step, 100.0 + step), *looking.sample(100.0 + step, step))
    gpus.set({"1.lost": 15})
    entries = _feed(engine, 108.0, *looking.sample(108.0, 7))
    entries += _feed(engine, 115.0)  # the trainer hangs on it: no step comes any more
    (opened,) = [e for e in entries if e.kind == "incident" and e.state == "open"]
    assert opened.data["alerts"] == ["GpuLost{rank=1,role=gpu,series=gpu_lost}"]
    assert opened.data["onset"] == 8 and engine.state.step == 7


def test_a_warning_ends_when_the_gpu_is_well(gpus: StandIn, looking: Looking) -> None:
    """A flag that was set and is not any more clears its alert."""
    engine = _engine(PACK)
    told = []
    for step in range(12):
        gpus.set({"0.throttle": 0x40 if 3 <= step < 6 else 4})
        told += _feed(engine, 100.0 + step, _trained(step, 100.0 + step), *looking.sample(100.0 + step, step - 1))
    assert [e.state for e in told if e.kind == "alert"] == ["firing", "resolved"]


def test_samples_of_one_step_are_one_record(gpus: StandIn, looking: Looking) -> None:
    """A step of minutes fills no window with its seconds: the newest value stands."""
    engine = _engine(PACK)
    _feed(engine, 100.0, _trained(0, 100.0))
    for second in range(1, 60):
        gpus.set({"0.util": second})
        _feed(engine, 100.0 + second, *looking.sample(100.0 + second, 0))
    window = engine.state.windows["gpu/0"]["gpu_utilization"]
    assert (window.steps, window.values) == ([1], [59.0])


def test_the_gpus_follow_the_trainer_back(gpus: StandIn, looking: Looking) -> None:
    """After a rollback the run is at an earlier step, and so are its GPUs."""
    engine = _engine(PACK)
    for step in range(10):
        _feed(engine, 100.0 + step, _trained(step, 100.0 + step), *looking.sample(100.0 + step, step))
    for step in range(4, 8):
        _feed(engine, 120.0 + step, _trained(step, 120.0 + step, 1), *looking.sample(120.0 + step, step, 1))
    assert engine.state.windows["gpu/0"]["gpu_utilization"].steps == list(range(1, 9))
    assert engine.state.segment == 1 and not engine.state.processes["gpu/0"].ended


def test_before_the_first_step_the_gpus_are_at_step_0(gpus: StandIn, looking: Looking) -> None:
    """Loading a large model takes long, and a GPU that is lost meanwhile is told."""
    assert records(looking.sample(100.0))[0].step == 0


@pytest.mark.parametrize("seconds", [1.0, 20.0], ids=["quick steps", "long steps"])
def test_the_run_is_mended_as_it_would_be_without_gpus(gpus: StandIn, looking: Looking, seconds: float) -> None:
    """Telling of hardware must not change what is decided about the numbers."""
    gpus.set(count=2)
    without = _night(seconds, None)
    assert len(without) > 20 and _night(seconds, looking) == without


def test_at_most_one_sample_a_second(gpus: StandIn, looking: Looking) -> None:
    """However often the loop passes, the driver is asked once a second; a clock that is set back stops nothing."""
    looking.sample(100.0)
    before = gpus.asked("nvmlDeviceGetUtilizationRates")
    for hundredth in range(100):
        assert not looking.source.drain(100.0 + hundredth / 100)
    assert gpus.asked("nvmlDeviceGetUtilizationRates") == before
    assert records(looking.sample(101.0)) and records(looking.sample(50.0))


def test_a_sample_is_cheap(gpus: StandIn, looking: Looking) -> None:
    """Eight GPUs, once a second: under 1 % of a core, which is 10 ms a sample. Bounded at twice that."""
    gpus.set(count=8)
    looking.sample(0.0)
    began = time.process_time()
    for second in range(1, 201):
        assert len(records(looking.sample(float(second), second))) == 8
    spent = (time.process_time() - began) / 200
    print(f"{1e3 * spent:.2f} ms of processor time a sample of 8 GPUs")
    assert spent < 0.020


def _engine(pack: str) -> Engine:
    engine = Engine()
    engine.feed(Pack(0.0, "digest", pack))
    engine.feed(Command(0.0, Verb.CONFIGURE, {"mode": "act", "approvals": False, "run": "run", "next_directive": 1}))
    return engine


def _feed(engine: Engine, at: float, *items: Item) -> list[Entry]:
    return engine.feed(Batch(at, items)) + engine.feed(Tick(at))


def _trained(step: int, at: float, segment: int = 0, **values: float) -> Record:
    told = {"loss": 0.5, "grad_norm": 0.3, "entropy": 1.2, "reward": 0.6, "step_applied": 1.0, "params_finite": 1.0}
    return Record("trainer", 0, "life-a", segment, step + 1, step, at, {**told, **values})


def _night(seconds: float, looking: Looking | None) -> list[tuple[str, str, str, int]]:
    """Eighty steps that are poisoned, lose their entropy and their experts' balance, and see a knob turned by hand; and
    what is decided about them. The GPUs are told beside them where asked."""
    engine = _engine(builtin())
    told: list[Entry] = []
    for step in range(80):
        ends = 1000.0 + seconds * (step + 1)
        for second in range(int(ends - seconds) + 1, int(ends) + 1) if looking is not None else ():
            told += _feed(engine, float(second), *looking.sample(float(second), step - 1))
        ill = {"loss": NAN, "grad_norm": NAN} if step in (10, 11, 70) else {}
        ill |= {"entropy": 0.05} if 20 <= step < 50 else {}
        loads = ExpertLoad(1, 1, 8, (7000, *[10] * 7) if 30 <= step < 45 else (1000,) * 8)
        trained = _trained(step, ends, learning_rate=1e-5 if step < 25 else 3e-5, **ill)
        told += _feed(engine, ends, trained._replace(load=loads))
    return [(e.kind, e.subject, e.state, e.step) for e in told if e.kind in ("incident", "action", "alert")]
