"""torchtune's rows and its bar: on disk, on the console amid progress, of GRPO, with tensors for numbers."""

import math

import pytest
from log_readers import long_lines_are_quick, mangled_are_read, prefixes_are_read, records, said, same, told

from gyrostat_agent.sources.logs.formats.torchtune import TORCHTUNE
from gyrostat_agent.sources.logs.said import SAVED, Note

NAN = math.nan
ROW = "Step 12 | loss:1.2345 lr:1e-05 tokens_per_second_per_gpu:812.1 grad_norm:0.31 "
GRPO = (
    "Step 3 | rewards:0.44 successes:0.25 num_stop_tokens:16 loss:-0.002 policy_loss:-0.0021 kl_loss:0.0031 "
    "clipfrac:0.01 ratios:1.0002 approx_policy_kl:0.0004 response_lengths:211.5 "
)
BAR = "1|12|Loss: 1.2345678:   4%|▍         | 12/300 [00:10<04:20,  1.11it/s]"
FULL = {"loss": 1.2345, "lr": 1e-05, "tokens_per_second_per_gpu": 812.1, "grad_norm": 0.31}


@pytest.mark.parametrize(
    ("line", "step", "values"),
    [
        pytest.param(ROW, 12, FULL, id="row"),
        pytest.param(ROW.strip(), 12, FULL, id="trimmed"),
        pytest.param("Step 0 | loss:1.7535516023635864 lr:2e-05 gpu_resources:13708965376 ", 0,
                     {"loss": 1.7535516023635864, "lr": 2e-05, "gpu_resources": 13708965376.0}, id="old"),
        pytest.param("Step 12 | loss:1.2345", 12, {"loss": 1.2345}, id="one-value"),
        pytest.param("Step 12 | loss:nan lr:1e-05 grad_norm:nan ", 12, {"loss": NAN, "lr": 1e-05, "grad_norm": NAN},
                     id="nan"),
        pytest.param("Step 12 | loss:-inf lr:1e-05 ", 12, {"loss": -math.inf, "lr": 1e-05}, id="inf"),
        pytest.param("Step 12 | loss:tensor(1.2345) lr:1e-05 ", 12, {"loss": 1.2345, "lr": 1e-05}, id="tensor"),
        pytest.param("Step 12 | loss:tensor(nan, device='cuda:0') lr:1e-05 ", 12, {"loss": NAN, "lr": 1e-05},
                     id="tensor-nan"),
        pytest.param("Step 12 | loss:tensor(1.5, device='cuda:0', dtype=torch.bfloat16) lr:1e-05 ", 12,
                     {"loss": 1.5, "lr": 1e-05}, id="tensor-of-bfloat16"),
        pytest.param("Step 12 | loss:tensor(1.2345, grad_fn=<MeanBackward0>) lr:1 ", 12, {"loss": 1.2345, "lr": 1.0},
                     id="tensor-with-gradient"),
        pytest.param("Step 12 | loss:np.float64(1.5) lr:1e-05 ", 12, {"loss": 1.5, "lr": 1e-05}, id="numpy"),
        pytest.param("Step 12 | loss:None lr:1e-05 ", 12, {"loss": NAN, "lr": 1e-05}, id="none"),
        pytest.param(GRPO, 3, {"rewards": 0.44, "successes": 0.25, "num_stop_tokens": 16.0, "loss": -0.002,
                               "policy_loss": -0.0021, "kl_loss": 0.0031, "clipfrac": 0.01, "ratios": 1.0002,
                               "approx_policy_kl": 0.0004, "response_lengths": 211.5}, id="grpo"),
        pytest.param("Step 4 | peak_memory_active:12.5 peak_memory_alloc:11.0 loss:0.5 ", 4,
                     {"peak_memory_active": 12.5, "peak_memory_alloc": 11.0, "loss": 0.5}, id="memory"),
        pytest.param("Step 4 | rank:a loss:0.5 ", 4, {"loss": 0.5}, id="a-word"),
        pytest.param("Step 4 | loss:0.5 lr:", 4, {"loss": 0.5}, id="cut-behind-a-name"),
        pytest.param("Step 4 | loss:0.5 grad_no", 4, {"loss": 0.5}, id="cut-in-a-name"),
        pytest.param("Step 4 | loss:tensor(0.5, dev", 4, {}, id="cut-in-a-tensor"),
        pytest.param(BAR, 12, {"Loss": 1.2345678}, id="bar"),
        pytest.param("3|1200|Loss: nan: 100%|██████████| 300/300 [04:20<00:00]", 1200, {"Loss": NAN}, id="bar-nan"),
        pytest.param("1|7|Loss: 0.5", 7, {"Loss": 0.5}, id="bar-alone"),
        pytest.param("[rank0]:Step 4 | loss:0.5 ", 4, {"loss": 0.5}, id="torchrun"),
        pytest.param("  0%|          | 0/300 [00:00<?, ?it/s]Step 1 | loss:0.5 lr:1e-05 ", 1,
                     {"loss": 0.5, "lr": 1e-05}, id="behind-a-bar"),
        pytest.param("Step 1 | loss:0.5 lr:1e-05   4%|▍         | 12/300 [00:10<04:20,  1.11it/s]", 1,
                     {"loss": 0.5, "lr": 1e-05}, id="before-a-bar"),
        pytest.param("Step 1 | rollout/loss:0.5 val.acc:0.2 x-y:3 ", 1,
                     {"rollout/loss": 0.5, "val.acc": 0.2, "x-y": 3.0}, id="names"),
    ],
)  # fmt: skip
def test_rows(line: str, step: int, values: dict[str, float]) -> None:
    """Each line's step and numbers."""
    found = told(TORCHTUNE, line)
    assert [number for number, _, _ in found] == ([step] if values else [])
    assert all(same(read, values) for _, _, read in found)


def test_canonical_names() -> None:
    """What a rule sees of GRPO: the reward, the divergences, the loss that is negative."""
    [one] = records(TORCHTUNE, GRPO)
    assert {"reward": 0.44, "loss": -0.002, "kl": 0.0031, "ppo_kl": 0.0004, "clip_fraction": 0.01,
            "response_length": 211.5}.items() <= one.values.items()  # fmt: skip


def test_a_bar_and_its_row_are_one_step() -> None:
    """The bar, redrawn, says the step's loss once more: one record, the row's own number."""
    found = records(TORCHTUNE, BAR + "\r" + BAR + "\r" + ROW, BAR, "1|13|Loss: 1.5:   4%|", ROW.replace("12", "13", 1))
    assert [one.step for one in found] == [12, 13] and found[0].values["loss"] == pytest.approx(1.2345678)
    assert found[0].values["grad_norm"] == 0.31


def test_only_bars() -> None:
    """A run that logs elsewhere has only its bar: the loss is read from there."""
    found = records(TORCHTUNE, *(f"1|{step}|Loss: {step}.5:   4%|▍" for step in (1, 2, 3)))
    assert [(one.step, one.values["loss"]) for one in found] == [(1, 1.5), (2, 2.5), (3, 3.5)]


def test_two_rows_in_one_line() -> None:
    """Rows without a newline between are two."""
    found = told(TORCHTUNE, "Step 4 | loss:0.5 Step 5 | loss:0.6 ")
    assert [(step, values) for step, _, values in found] == [(4, {"loss": 0.5}), (5, {"loss": 0.6})]


def test_checkpoints() -> None:
    """The files of a checkpoint are one note, at the newest step."""
    saved = (
        "INFO:torchtune.utils._logging:Model checkpoint of size 4.98 GiB saved to /out/epoch_0/model-0000{}.safetensors"
    )
    assert said(TORCHTUNE, ROW, saved.format(1), saved.format(2))[1:] == [Note(SAVED, 12)]


@pytest.mark.parametrize(
    "line",
    [
        "Step 12 |  31.20s | Loss 0.0021 | Entropy 0.4127",
        "Step 12 | ",
        "INFO:torchtune.utils.logging:Model is initialized with precision torch.bfloat16.",
        "Writing logs to /tmp/logs/log_1723844072.txt",
        "MicroStep 3 | loss:1.0",
        "batch_size: 4",
        "",
    ],
    ids=range(7),
)
def test_what_says_nothing(line: str) -> None:
    """Another trainer's step and what is said at the start are no rows."""
    assert said(TORCHTUNE, line) == []


@pytest.mark.parametrize(
    ("line", "sign"),
    [(ROW, 3), (BAR, 3), (GRPO, 3), ("Step 12 |  31.20s | Loss 0.0021", 0), ("step: 12  loss:  3.1", 0)],
    ids=["row", "bar", "grpo", "prime-rl", "torchtitan"],
)
def test_sign(line: str, sign: int) -> None:
    """Only its own rows and bar."""
    assert TORCHTUNE.sign(line) == sign


def test_hostile_lines() -> None:
    """Cut or mangled, nothing raises; long, nothing is slow."""
    lines = [ROW, GRPO, BAR, "Step 12 | loss:tensor(nan, device='cuda:0') lr:1e-05 "]
    assert prefixes_are_read(TORCHTUNE, lines) and mangled_are_read(TORCHTUNE, lines)
    assert long_lines_are_quick(TORCHTUNE, lines)
