"""TensorBoard folders: every file under them, in the order of time, and each trainer's tags under canonical names."""

import csv
import os
from pathlib import Path

import pytest
from eventbytes import BEGINNING, field, header, put, run, scalar

from gyrostat.wire import Record
from gyrostat_agent.sources.eventfile import EventFile
from gyrostat_agent.sources.logs.gathered import Gathered
from gyrostat_agent.sources.logs.names import CANONICAL, Names
from gyrostat_agent.sources.logs.said import EVAL, TRAIN, Told
from gyrostat_agent.sources.tensorboard import EventFolder
from gyrostat_agent.sources.tensorboardtags import TAGS

DATA = Path(__file__).parent / "data"
SAMPLE = DATA / "trl-grpo-qwen3_moe.tfevents"


def all_told(source: EventFile | EventFolder) -> list[Told]:
    told = source.told()
    while not source.at_end:
        told += source.told()
    return told


def test_a_true_file_is_read_as_the_package_reads_it() -> None:
    """TRL's own, each of its 286 numbers, compared with what the tensorboard package found in it."""
    with open(DATA / "trl-grpo-qwen3_moe.csv", encoding="utf-8") as listed:
        expected = [(int(row["step"]), row["tag"], float(row["value"])) for row in csv.DictReader(listed)]
    file = EventFile(str(SAMPLE))
    assert [row[1:] for row in file.rows()] == expected and file.at_end
    assert (file.damaged, file.pending, file.offset) == (0, 0, SAMPLE.stat().st_size)


def test_a_true_file_becomes_records_under_canonical_names() -> None:
    """One row a step, with all its tags and the time it was written at."""
    told = all_told(EventFile(str(SAMPLE)))
    assert [one.step for one in told] == list(range(1, 11)) and all(one.at and one.at > 1.7e9 for one in told)
    gathered = Gathered(Names(TAGS), "life")
    records = [found for found in (*gathered.take(told), *gathered.flush()) if isinstance(found, Record)]
    assert [record.step for record in records] == list(range(1, 11))
    wanted = {"loss", "grad_norm", "learning_rate", "entropy", "kl", "reward", "balance_loss", "response_length"}
    assert all(wanted <= record.values.keys() for record in records)
    assert records[0].values["loss"] == pytest.approx(0.062773, abs=1e-6)
    assert records[-1].values["loss"] == pytest.approx(-0.191943, abs=1e-6)


def test_lives_of_a_trainer_are_told_one_after_the_other(tmp_path: Path) -> None:
    """Each began a file of its own, in whatever folder; what was resumed comes after what it goes on from."""
    put(tmp_path / "runs" / "a", 1, run(range(1, 5)))
    put(tmp_path / "runs" / "b", 2, run(range(5, 9)))
    (tmp_path / "runs" / "a" / "checkpoint.pt").write_bytes(b"not of TensorBoard")
    folder = EventFolder(str(tmp_path))
    told = all_told(folder)
    assert [one.step for one in told] == list(range(1, 9)) and {len(one.values) for one in told} == {3}
    assert sorted(folder.files) == [f"runs/{x}/events.out.tfevents.{n}.host.{n % 10}.0" for x, n in
                                    (("a", 1_800_000_001), ("b", 1_800_000_002))]  # fmt: skip
    assert folder.damaged == 0 and folder.troubles == {}


def test_files_written_side_by_side_are_told_step_by_step(tmp_path: Path) -> None:
    """Long files too: Gathered makes one record of a step, and no step goes back."""
    put(tmp_path, 1, run(range(1, 3000), tags=4))
    put(tmp_path / "reward_best", 2, BEGINNING + b"".join(scalar(s, "reward", s / 2) for s in range(1, 3000, 10)))
    gathered = Gathered(Names(TAGS), "life")
    found = [*gathered.take(all_told(EventFolder(str(tmp_path)))), *gathered.flush()]
    records = [record for record in found if isinstance(record, Record)]
    assert [record.step for record in records] == list(range(1, 3000)) and {r.segment for r in records} == {0}
    assert records[10].values["reward"] == 5.5 and len(records[10].values) == 5


def test_curves_drawn_together_keep_their_names_apart(tmp_path: Path) -> None:
    """add_scalars writes one tag into folders below: they do not fall on each other, nor on the run's own."""
    put(tmp_path, 1, scalar(1, "loss", 1.0))
    for number, name in enumerate(("loss_policy", "loss_value"), 2):
        put(tmp_path / name, number, scalar(1, "loss", float(number)))
    values: dict[str, float] = {}
    for one in all_told(EventFolder(str(tmp_path))):
        values.update(one.values)
    assert values == {"loss": 1.0, "loss_policy/loss": 2.0, "loss_value/loss": 3.0}


def test_what_lies_beside_training_as_validation_is_evaluation(tmp_path: Path) -> None:
    """Keras' two folders, of the same tags; a run that is alone is training whatever it is called."""
    put(tmp_path / "train", 1, scalar(1, "loss", 1.0))
    put(tmp_path / "validation", 2, scalar(1, "loss", 2.0))
    told = all_told(EventFolder(str(tmp_path)))
    assert [(one.phase, dict(one.values)) for one in told] == [(TRAIN, {"loss": 1.0}), (EVAL, {"loss": 2.0})]
    put(tmp_path / "alone" / "test", 1, scalar(1, "loss", 1.0))
    assert [one.phase for one in all_told(EventFolder(str(tmp_path / "alone")))] == [TRAIN]


def test_a_file_that_comes_later_is_found(tmp_path: Path) -> None:
    """In a folder that was there, in a new one, and below it; and what grows goes on being told."""
    folder = EventFolder(str(tmp_path / "run"))
    assert folder.told() == [] and folder.troubles == {str(tmp_path / "run"): "No such file or directory"}
    first = put(tmp_path / "run", 1, run(range(1, 3)))
    assert [one.step for one in all_told(folder)] == [1, 2] and folder.troubles == {}
    with open(first, "ab") as more:
        more.write(run(range(3, 5))[len(BEGINNING) :])
    put(tmp_path / "run", 2, run(range(5, 7)))
    assert [one.step for one in all_told(folder)] == [3, 4, 5, 6]
    put(tmp_path / "run" / "x" / "y", 3, run(range(7, 9)))
    assert [one.step for one in all_told(folder)] == [7, 8] and folder.told() == []


def test_a_folder_goes_on_where_another_reader_left_off(tmp_path: Path) -> None:
    """Every file by its own offset, also where a look ended between two files; a new one from its start."""
    one = put(tmp_path, 1, run(range(1, 4)))
    put(tmp_path / "side", 2, BEGINNING + b"".join(scalar(s, "x", 1.0) for s in range(1, 4)))
    first = EventFolder(str(tmp_path))
    assert len(all_told(first)) == 6
    with open(one, "ab") as more:
        more.write(run(range(4, 6))[len(BEGINNING) :])
    put(tmp_path / "new", 3, run(range(6, 8)))
    second = EventFolder(str(tmp_path), first.offsets())
    assert [told.step for told in all_told(second)] == [4, 5, 6, 7]
    assert EventFolder(str(tmp_path), second.offsets()).told() == []


def test_what_was_read_but_not_told_is_told_by_the_next_reader(tmp_path: Path) -> None:
    """More steps than one look tells: the offsets are of what was told, to the step."""
    put(tmp_path, 1, run(range(1, 30_001), tags=1))
    first = EventFolder(str(tmp_path))
    told = [one.step for one in first.told()]
    assert told and not first.at_end
    rest = [one.step for one in all_told(EventFolder(str(tmp_path), first.offsets()))]
    assert told + rest == list(range(1, 30_001))


def test_a_single_file_is_followed_as_a_folder_of_it_would_be(tmp_path: Path) -> None:
    """Also one that is not there yet, and by its offset."""
    path = tmp_path / "events.out.tfevents.1800000001.host.1.0"
    first = EventFolder(str(path))
    assert first.told() == [] and first.trouble == "No such file or directory" and first.at_end
    put(tmp_path, 1, run(range(1, 4)))
    assert [one.step for one in all_told(first)] == [1, 2, 3] and first.trouble == ""
    with path.open("ab") as more:
        more.write(run(range(4, 6))[len(BEGINNING) :])
    assert [one.step for one in all_told(EventFolder(str(path), first.offsets()))] == [4, 5]


def test_one_look_reads_no_more_than_it_is_given(tmp_path: Path) -> None:
    """Images by the hundred hold nobody up; what lies behind them is told by a later look, in its place."""
    image = b"\x09" + bytes(8) + field(4, b"\x01" * 100_000)
    record = header(len(image)) + image + bytes(4)
    put(tmp_path, 1, run(range(1, 3)) + record * 20 + run(range(3, 5))[len(BEGINNING) :])
    put(tmp_path / "side", 2, scalar(4, "x", 1.0, wall_time=1.9e9))
    folder, looks, told = EventFolder(str(tmp_path)), 0, list[int | None]()
    while not folder.at_end:
        told += [one.step for _, one in folder.steps(most_bytes=200_000)]
        looks += 1
    assert told == [1, 2, 3, 4, 4] and looks >= 3


def test_what_is_not_taken_of_a_look_is_not_lost(tmp_path: Path) -> None:
    """Whoever has enough of it leaves off: the next look, or the next reader, goes on there."""
    put(tmp_path, 1, run(range(1, 7)))
    folder = EventFolder(str(tmp_path))
    assert next(folder.steps())[1].step == 1 and not folder.at_end
    assert [one.step for one in all_told(EventFolder(str(tmp_path), folder.offsets()))] == [2, 3, 4, 5, 6]
    assert [one.step for one in all_told(folder)] == [2, 3, 4, 5, 6]


def test_a_file_that_is_cleared_away_is_no_trouble(tmp_path: Path) -> None:
    """What it held has been told."""
    first = put(tmp_path, 1, run(range(1, 3)))
    folder = EventFolder(str(tmp_path))
    assert len(all_told(folder)) == 2
    first.unlink()
    assert folder.told() == [] and folder.troubles == {}


def test_the_rows_of_a_folder_are_those_of_its_files(tmp_path: Path) -> None:
    """Each number with its time, step and tag."""
    put(tmp_path, 1, run(range(1, 3)))
    put(tmp_path, 2, run(range(3, 4)))
    folder = EventFolder(str(tmp_path))
    assert [row[1] for row in folder.rows()] == [1, 1, 1, 2, 2, 2, 3, 3, 3] and folder.at_end


def test_what_is_no_event_file_is_left_alone(tmp_path: Path) -> None:
    """A pipe by such a name hangs nobody, a link in a circle is no end of folders, a folder by such a name is one."""
    os.mkfifo(tmp_path / "events.out.tfevents.1.pipe")
    (tmp_path / "again").symlink_to(tmp_path)
    put(tmp_path / "events.out.tfevents.2.folder", 3, run(range(1, 3)))
    folder = EventFolder(str(tmp_path))
    assert [one.step for one in all_told(folder)] == [1, 2]
    assert folder.troubles == {"events.out.tfevents.1.pipe": "not a regular file"} and len(folder.files) == 2


@pytest.mark.parametrize(
    ("tag", "canonical"),
    [
        ("train/loss", "loss"), ("train/grad_norm", "grad_norm"), ("train/learning_rate", "learning_rate"),
        ("train/completions/mean_length", "response_length"), ("train/completions/clipped_ratio", "truncated_fraction"),
        ("train/clip_ratio/region_mean", "clip_fraction"), ("train/aux_loss", "balance_loss"),
        ("train/sampling/sampling_logp_difference/mean", "mismatch_diff"), ("train/train_loss", ""),
        ("lm loss", "loss"), ("grad-norm", "grad_norm"), ("learning-rate", "learning_rate"),
        ("loss-scale", "loss_scale"), ("iteration-time", "step_time"), ("load_balancing_loss", "balance_loss"),
        ("moe/load_balancing_loss_layer_3", ""), ("params-norm", ""), ("batch-size", ""), ("rl/kl_term", "kl"),
        ("train/policy_loss", "loss"), ("train/actor_grad_norm", "grad_norm"), ("train/vllm_kl", "mismatch_kl"),
        ("train/ppo_clip_ratio", "clip_fraction"), ("train/critic_loss", ""), ("train/timing/step_total", "step_time"),
        ("train/gen_kl_error", "mismatch_kl"), ("train/approx_entropy", "entropy"), ("train/kl_penalty", "kl"),
        ("loss_metrics/global_avg_loss", "loss"), ("loss_metrics/global_max_loss", ""),
        ("throughput(tps)", "throughput"), ("time_metrics/end_to_end(s)", "step_time"),
        ("memory/max_reserved(GiB)", ""), ("time_metrics/data_loading(s)", ""),
    ],
)  # fmt: skip
def test_a_trainers_tag_means_what_its_source_says(tag: str, canonical: str) -> None:
    """Those of TRL, Megatron, OpenRLHF, NeMo-RL and torchtitan, by name."""
    assert Names(TAGS).of(tag) == (canonical, TRAIN) and canonical in ("", *CANONICAL)
