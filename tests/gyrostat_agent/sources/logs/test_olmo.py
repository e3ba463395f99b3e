"""OLMo-core's console: indented metrics under a head, numbers for people, the worst block, steps that were skipped."""

import math

import pytest
from log_readers import long_lines_are_quick, mangled_are_read, prefixes_are_read, records, said, same

from gyrostat_agent.sources.logs.formats.olmo import OLMO
from gyrostat_agent.sources.logs.said import RESUMED, SAVED, SKIPPED, Note, Step, Told

NAN = math.nan
LOGGER = "2026-01-02 03:04:05.678\tn01:0\tolmo_core.train.callbacks.console_logger:58\tINFO\t"
HEAD = LOGGER + "[step=12/5000,epoch=1,eta=3h, 1m]"
BLOCK = [
    HEAD,
    "    optim/total grad norm=0.1873",
    "    optim/LR (group 0)=0.0001",
    "    train/CE loss=3.142",
    "    train/load balancing loss=1.02",
    "    train/router Z loss=0.013",
    "    train/block 03/load imbalance=1.84",
    "    throughput/device/TPS=12,345",
    "    optim/step skipped=0.0",
]
WORST = "load imbalance of the worst block, above 1"


def head(step: int) -> str:
    """The head of a step's block."""
    return HEAD.replace("step=12", f"step={step}")


@pytest.mark.parametrize(
    ("line", "values"),
    [
        pytest.param("    optim/total grad norm=0.1873", {"optim/total grad norm": 0.1873}, id="gradient"),
        pytest.param("    optim/total grad norm=nan", {"optim/total grad norm": NAN}, id="gradient-nan"),
        pytest.param("    optim/total grad norm=inf", {"optim/total grad norm": math.inf}, id="gradient-inf"),
        pytest.param("    optim/LR (group 0)=0.0001", {"optim/LR (group 0)": 0.0001}, id="lr"),
        pytest.param("    optim/LR=5.5E-05", {"optim/LR": 5.5e-05}, id="lr-small"),
        pytest.param("    train/CE loss=3.142", {"train/CE loss": 3.142}, id="loss"),
        pytest.param("    train/CE loss=nan", {"train/CE loss": NAN}, id="loss-nan"),
        pytest.param("    train/PPL=23.15", {"train/PPL": 23.15}, id="ppl"),
        pytest.param("    train/PPL=1,234", {"train/PPL": 1234.0}, id="ppl-comma"),
        pytest.param("    train/PPL=inf", {"train/PPL": math.inf}, id="ppl-inf"),
        pytest.param("    train/Z loss=0.0013", {"train/Z loss": 0.0013}, id="z-of-the-head"),
        pytest.param("    train/load balancing loss=1.02", {"train/load balancing loss": 1.02}, id="balance"),
        pytest.param("    train/router Z loss=0.013", {"train/router Z loss": 0.013}, id="z-of-the-router"),
        pytest.param("    train/block 03/token drop rate=0.12", {"train/block 03/token drop rate": 0.12}, id="drops"),
        pytest.param("    throughput/device/TPS=12,345", {"throughput/device/TPS": 12345.0}, id="tps"),
        pytest.param("    throughput/device/TPS (actual avg)=1,234,567",
                     {"throughput/device/TPS (actual avg)": 1234567.0}, id="tps-average"),
        pytest.param("    throughput/total tokens=1.2B", {"throughput/total tokens": 1.2e9}, id="billions"),
        pytest.param("    throughput/total tokens=3.4T", {"throughput/total tokens": 3.4e12}, id="trillions"),
        pytest.param("    throughput/total petaflops=12.5M", {"throughput/total petaflops": 12.5e6}, id="millions"),
        pytest.param("    gpu_memory/GPU active mem (GiB)=61.2", {"gpu_memory/GPU active mem (GiB)": 61.2}, id="GiB"),
        pytest.param("    system/GPU active mem (%)=77.41", {"system/GPU active mem (%)": 77.41}, id="system"),
        pytest.param("    optim/step skipped=0.0", {"optim/step skipped": 0.0}, id="applied"),
        pytest.param("    throughput/device/MFU=0.0", {"throughput/device/MFU": 0.0}, id="zero"),
        pytest.param("    optim/total grad norm=1e-05", {"optim/total grad norm": 1e-05}, id="exponent"),
        pytest.param("    optim/total grad norm=", {}, id="cut-behind-the-name"),
        pytest.param("    optim/total grad no", {}, id="cut-in-the-name"),
        pytest.param("    train/name=word", {}, id="a-word"),
        pytest.param("    lr=0.1", {}, id="no-metric"),
        pytest.param("optim/total grad norm=1.0", {}, id="not-indented"),
    ],
)  # fmt: skip
def test_metrics(line: str, values: dict[str, float]) -> None:
    """Each indented line is one number of the head's step."""
    found = [one for one in said(OLMO, HEAD, line) if isinstance(one, Told)]
    assert [one.step for one in found] == ([12] if values else [])
    assert all(same(one.values, values) for one in found)


def test_a_block_is_one_record() -> None:
    """A head and its lines are one step, under canonical names; the logger's time is the record's."""
    [one] = records(OLMO, *BLOCK)
    assert one.step == 12 and one.time == pytest.approx(1767323045.678)
    assert same(one.values, {
        "grad_norm": 0.1873, "learning_rate": 0.0001, "loss": 3.142, "balance_loss": 1.02, "z_loss": 0.013,
        "train/block 03/load imbalance": 1.84, "expert_violation": 0.84, "throughput": 12345.0,
        "optim/step skipped": 0.0,
    })  # fmt: skip


@pytest.mark.parametrize(
    "line",
    [
        HEAD,
        LOGGER + "[step=12/5000,epoch=1]",
        LOGGER + "[step=12/???,epoch=1,eta=3h, 1m(hard stop)]",
        "[rank0]:" + HEAD,
        "\x1b[36m" + HEAD + "\x1b[0m",
    ],
    ids=["eta", "no-eta", "no-end", "torchrun", "coloured"],
)
def test_heads(line: str) -> None:
    """Each spelling of the head announces its step."""
    assert said(OLMO, line) == [Step(12)]


def test_the_worst_block_stands_for_all() -> None:
    """One collapsed layer of many is what the violation tells; a mean would hide it."""
    blocks = [f"    train/block {n:02d}/load imbalance={value}" for n, value in enumerate(("1.1", "7.5", "1.2"))]
    [one] = records(OLMO, HEAD, *blocks, "    throughput/device/TPS=1")
    assert one.values["expert_violation"] == 6.5 and one.values["train/block 02/load imbalance"] == 1.2


def test_the_worst_block_at_the_end() -> None:
    """Blocks as the last lines of a log, or before the next head, are not forgotten, and not carried over."""
    found = records(OLMO, head(1), "    train/block 00/load imbalance=3.0", head(2), "    train/CE loss=1.0", head(3),
                    "    train/block 00/load imbalance=2.0")  # fmt: skip
    assert [one.values.get("expert_violation") for one in found] == [2.0, None, 1.0]


def test_a_block_that_is_nan() -> None:
    """A NaN among the blocks is the worst of them, wherever it stands."""
    blocks = [f"    train/block {n:02d}/load imbalance={value}" for n, value in enumerate(("1.1", "nan", "9.2"))]
    [one] = records(OLMO, HEAD, *blocks)
    assert math.isnan(one.values["expert_violation"])


def test_steps_and_segments() -> None:
    """Heads without metrics make no records; going back is a new segment."""
    lines = [
        head(1),
        "    train/CE loss=3.0",
        head(2),
        head(3),
        "    train/CE loss=2.0",
        head(2),
        "    train/CE loss=2.5",
    ]
    assert [(one.segment, one.step) for one in records(OLMO, *lines)] == [(0, 1), (0, 3), (1, 2)]


def test_a_step_that_was_skipped() -> None:
    """``step skipped=1.0`` is a step that was not applied; 0.0 is none."""
    found = records(OLMO, head(1), "    train/CE loss=3.0", "    optim/step skipped=1.0", head(2),
                    "    train/CE loss=3.0", "    optim/step skipped=0.0")  # fmt: skip
    assert [one.values.get("step_applied") for one in found] == [0.0, None]
    assert said(OLMO, HEAD, "    optim/step skipped=1.0")[-1] == Note(SKIPPED, 12)


def test_evaluation_is_kept_apart() -> None:
    """An evaluation's loss is not the loss."""
    [one] = records(OLMO, HEAD, "    train/CE loss=3.0", "    eval/lm/c4/CE loss=9.0")
    assert one.values["loss"] == 3.0 and one.values["eval/lm/c4/CE loss"] == 9.0


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param(LOGGER + "Saving checkpoint for step 40 to '/ck/step40'...", [], id="saving"),
        pytest.param(LOGGER + "Checkpoint for step 40 saved successfully", [Note(SAVED, 40)], id="saved"),
        pytest.param(LOGGER + "Loading checkpoint from '/ck/step40'...", [Note(RESUMED, 40)], id="loading"),
        pytest.param(LOGGER + "Loading checkpoint from '/ck/other'...", [Note(RESUMED, -1)], id="loading-elsewhere"),
    ],
)
def test_checkpoints(line: str, expected: list[Note]) -> None:
    """Saved is what was saved successfully."""
    assert said(OLMO, line) == expected


def test_configuration_before_the_first_head() -> None:
    """Indented lines of a configuration are no metrics."""
    assert said(OLMO, "    optim/lr=0.1", "  train/x=3") == []


def test_lines_of_others_within_a_block() -> None:
    """A warning of another rank does not end a block."""
    [one] = records(
        OLMO, HEAD, "    train/CE loss=3.0", "[rank3]: UserWarning: something", "    optim/total grad norm=0.5"
    )
    assert one.values == {"loss": 3.0, "grad_norm": 0.5}


@pytest.mark.parametrize(
    ("line", "sign"),
    [(HEAD, 3), ("    train/CE loss=3.142", 1), (LOGGER + "Saving", 0), ("[Rank 0] step=20, skipped=4", 0)],
    ids=["head", "metric", "logger", "deepspeed"],
)
def test_sign(line: str, sign: int) -> None:
    """The head is its own."""
    assert OLMO.sign(line) == sign


def test_hostile_lines() -> None:
    """Cut or mangled, nothing raises; long, nothing is slow."""
    lines = [*BLOCK, LOGGER + "Loading checkpoint from '/ck/step40'..."]
    assert prefixes_are_read(OLMO, lines) and mangled_are_read(OLMO, lines) and long_lines_are_quick(OLMO, lines)
