"""What a rank does in these tests: ``torchrun worker.py SCENARIO HOW ROOT FACTS``; what it found goes to FACTS-<rank>.

A scenario asserts nothing: the tests read what every rank found, and say what must hold.
"""

import json
import math
import os
import resource
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any, Literal, cast

import torch
from torch import Generator, Tensor, nn

from gyrostat_reference import task
from gyrostat_reference.checkpoint import Checkpoint
from gyrostat_reference.data import Place
from gyrostat_reference.estimates import Estimates
from gyrostat_reference.faults import Fuse
from gyrostat_reference.knobs import KnobValues
from gyrostat_reference.manifest import CheckpointError, Manifest, digest_of
from gyrostat_reference.model import LoopMoE
from gyrostat_reference.ranks import Alone, RankLost, Ranks, clip, joined, spread, unsharded
from gyrostat_reference.reading import read
from gyrostat_reference.running import Running
from gyrostat_reference.shards import ShardWriter
from gyrostat_reference.state import TrainingState, capture, outline, put_back, whole

Facts = dict[str, Any]
SEQUENCES = 24  # of the global batch
TIMEOUT = 60.0


class Model:
    """A model spread over the ranks, its optimizer, and the step that all ranks take together."""

    def __init__(self, how: str, ranks: Ranks, seed: int = 0) -> None:
        torch.manual_seed(seed)
        self.ranks, self.raw = ranks, LoopMoE()
        self.loss_on = spread(self.raw, cast(Literal["ddp", "fsdp2"], how), ranks)
        self.optimizer = torch.optim.AdamW(self.raw.parameters(), 1e-3)

    def step(self) -> float:
        """One update; each rank has its part of the batch, and a part has more tokens that count than another."""
        ids, counted = (each.tensor_split(self.ranks.world)[self.ranks.rank] for each in _batch())
        total = self.ranks.sums([float(counted.sum())])[0]
        self.raw.zero_grad()
        loss = (_losses(self.loss_on, ids) * counted).sum() / total * self.ranks.world
        torch.autograd.backward(loss)
        norm = float(clip(self.raw.parameters(), 1.0))
        self.optimizer.step()
        return norm

    def roll_out(self, times: int) -> None:
        """Forwards without gradients."""
        with unsharded(self.raw), torch.no_grad():
            for _ in range(times):
                self.raw(_batch()[0])

    def whole(self) -> TrainingState:
        """All of the state."""
        return whole(self.raw, self.optimizer)

    def begin(self, writer: ShardWriter, step: int) -> Path | None:
        """Begin a checkpoint as the trainer does."""
        running = tuple(Running.of(Generator().manual_seed(rank), Estimates()) for rank in range(self.ranks.world))
        manifest = Manifest(step, 0, 0, time.time(), Place(7, 9, frozenset({3})), KnobValues()._asdict(), {})
        return writer.begin(Checkpoint(manifest, capture(self.raw, self.optimizer), running))


class Gate(Fuse):
    """Holds the writing thread at a point until it is let go."""

    def __init__(self, point: str) -> None:
        super().__init__()
        self._at, self.open = point, threading.Event()

    def reached(self, point: str) -> None:
        """Wait at the point."""
        if point == self._at:
            self.open.wait(TIMEOUT)


def digest(state: TrainingState) -> str:
    """Says of two states whether they are the same, bit for bit."""
    tensors = sorted((*state.weights.items(), *state.moments.items()))
    return digest_of(b"".join(name.encode() + tensor.numpy().tobytes() for name, tensor in tensors))


def _batch() -> tuple[Tensor, Tensor]:
    random = Generator().manual_seed(1)
    ids = torch.randint(0, 10, (SEQUENCES, task.LENGTH - 1), generator=random)
    return ids, (torch.rand(ids.shape, generator=random) < torch.linspace(0.1, 0.9, SEQUENCES)[:, None]).float()


def _losses(model: nn.Module, ids: Tensor) -> Tensor:
    losses: Tensor = model(ids).logits.logsumexp(-1)
    return losses


# -- scenarios -----------------------------------------------------------------------------------------------


def train(ranks: Ranks, how: str, root: Path) -> Facts:
    """Small collectives, rollouts, steps, capture, put back, and sharded checkpoints."""
    model = Model(how, ranks, seed=ranks.rank)
    facts: Facts = {"begun alike": digest(model.whole())}
    norms = []
    for _ in range(2):
        model.roll_out(1 + ranks.rank)  # different numbers: nothing waits for another rank in there
        norms += [model.step(), model.step()]
    facts |= {"norms": norms, "plain": _plain_run(4)[0], "far": _far(model.whole(), _plain_run(4)[1])}
    return facts | _numbers(ranks) | _undone(model) | _written(model, root)


def _numbers(ranks: Ranks) -> Facts:
    """Small collectives."""
    mine = [0.1 * (ranks.rank + 1), math.nan if ranks.rank == 1 else 1.0, 1e16 if ranks.rank else -1e16, 1.0]
    aside = ranks.aside()
    answers: list[list[float]] = []
    thread = threading.Thread(target=lambda: answers.extend(aside.sums([float(i)]) for i in range(50)))
    thread.start()
    here = [ranks.sums([float(-i)])[0] for i in range(50)]
    thread.join(TIMEOUT)
    return {
        "sums": [value.hex() for value in ranks.sums(mine)],
        "gathered": [data.hex() for data in ranks.gathered(bytes([ranks.rank]) * ranks.rank)],
        "nothing": [data.hex() for data in ranks.gathered(b"")],
        "largest": ranks.largest(float(ranks.rank)),
        "largest of nan": [ranks.largest(math.nan if ranks.rank == rank else 5.0) for rank in range(ranks.world)],
        "two threads": here == [float(-i * ranks.world) for i in range(50)]
        and answers == [[float(i * ranks.world)] for i in range(50)],
    }


def _plain_run(steps: int) -> tuple[list[float], TrainingState]:
    """What one process makes of the same batches, beginning with rank 0's weights."""
    model = Model("ddp", Alone())
    return [model.step() for _ in range(steps)], model.whole()


def _far(ours: TrainingState, theirs: TrainingState) -> float:
    return max(float((ours.weights[name] - theirs.weights[name]).abs().max()) for name in theirs.weights)


def _undone(model: Model) -> Facts:
    """A step undone from this rank's copy, and from whole tensors, is taken again."""
    mine, all_of_it = capture(model.raw, model.optimizer), model.whole()
    before, first = digest(all_of_it), (model.step(), digest(model.whole()))[1]
    put_back(mine, model.raw, model.optimizer)
    back, second = digest(model.whole()), (model.step(), digest(model.whole()))[1]
    put_back(all_of_it, model.raw, model.optimizer)
    return {
        "put back": [before, back, digest(model.whole())],
        "taken again": [first, second, (model.step(), digest(model.whole()))[1]],
    }


def _written(model: Model, root: Path) -> Facts:
    """Begun; then once more while rank 1 alone still writes; and the checkpoint is of the moment it was begun."""
    gate = Gate("checkpoint.renamed" if model.ranks.rank == 1 else "")
    writer = ShardWriter(root, 3, gate, model.ranks, model.raw)
    saved = digest(model.whole())
    folder = model.begin(writer, 4)
    model.roll_out(2)
    model.step()
    if model.ranks.rank != 1:
        writer.wait()
    again = model.begin(writer, 5)
    gate.open.set()
    writer.wait()
    return {
        "saved": saved, "folder": str(folder), "again": str(again), "missed": writer.missed, "failed": writer.failed,
        "fault": writer.fault,
    }  # fmt: skip


def resume(ranks: Ranks, how: str, root: Path) -> Facts:
    """Go on from the newest checkpoint, which other ranks may have written; refuse what is wrong for one rank."""
    model = Model(how, ranks, seed=5)
    untouched = digest(model.whole())
    folder = max(root.glob("step-*"))
    wrong = "xxh3_128:" + "0" * 32 if ranks.rank == 1 else ""
    refused = _refusal(lambda: read(root, folder, outline(model.raw), ranks, wrong))
    after = digest(model.whole())
    checkpoint = read(root, folder, outline(model.raw), ranks)
    put_back(checkpoint.training, model.raw, model.optimizer)
    restored = digest(model.whole())
    return {
        "refused": refused, "untouched": after == untouched, "restored": restored, "norm": model.step(),
        "cursor": checkpoint.manifest.place.cursor, "then": digest(model.whole()),
    }  # fmt: skip


def mishaps(ranks: Ranks, how: str, root: Path) -> Facts:
    """A full disk, then a NaN."""
    model = Model(how, ranks)
    model.step()
    writer = ShardWriter(root, 3, Fuse(), ranks, model.raw)
    return {"full": _full(model, writer, root), "poison": _poison(model, writer, root)}


def _full(model: Model, writer: ShardWriter, root: Path) -> Facts:
    """The disk takes nothing large from the last rank; after that it takes all."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    if model.ranks.rank == model.ranks.world - 1:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    model.begin(writer, 7)
    writer.wait()
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    model.ranks.gathered(b"")  # rank 0 has cleared up
    facts = {"failed": writer.failed, "fault": writer.fault, "left": sorted(p.name for p in root.iterdir())}
    model.ranks.gathered(b"")  # all have looked
    folder = model.begin(writer, 8)
    writer.wait()
    return facts | {"then": writer.failed, "complete": (folder or root / "none").is_dir()}


def _poison(model: Model, writer: ShardWriter, root: Path) -> Facts:
    """A checkpoint with one NaN, in the last rank's part."""
    state = model.whole()
    state.weights["block.experts.fall"][-1, 0, 0] = math.nan
    put_back(state, model.raw, model.optimizer)
    folder = model.begin(writer, 9)
    writer.wait()
    return {"refused": _refusal(lambda: read(root, str(folder), outline(model.raw), model.ranks))}


def killed(ranks: Ranks, how: str, root: Path) -> Facts:
    """Rank 1 dies as a lost node does while the shards are written."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # torchrun's, which would come before what is looked at here
    model = Model(how, ranks)
    model.step()
    fuse = Fuse.read("checkpoint.files:1") if ranks.rank == 1 else Fuse()
    writer = ShardWriter(root, 3, fuse, ranks, model.raw)
    model.begin(writer, 4)
    writer.wait()
    return {
        "lost": _refusal(lambda: ranks.sums([1.0])), "failed": writer.failed, "fault": writer.fault,
        "left": sorted(p.name for p in root.iterdir()),
    }  # fmt: skip


def hung(ranks: Ranks, how: str, root: Path) -> Facts:
    """Rank 1 is alive and does not answer."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if ranks.rank == 1:
        threading.Event().wait(TIMEOUT)  # torchrun ends it sooner
    began = time.monotonic()
    return {"lost": _refusal(lambda: ranks.sums([1.0])), "seconds": time.monotonic() - began}


def _meet(root: Path) -> None:
    """Wait until every rank is here: one may start seconds behind another, which is not what is looked at."""
    (root / f"here-{os.environ['RANK']}").touch()
    until = time.monotonic() + TIMEOUT
    while len(list(root.glob("here-*"))) < int(os.environ["WORLD_SIZE"]) and time.monotonic() < until:
        time.sleep(0.01)


def _refusal(action: Any) -> str:
    try:
        action()
    except (CheckpointError, RankLost) as error:
        return f"{type(error).__name__}: {error}"
    return ""


def main() -> None:
    """Run a scenario as one rank."""
    torch.set_num_threads(1)
    scenario, how, root, facts = sys.argv[1:]
    if scenario == "hung":
        _meet(Path(root))
    ranks = joined(os.environ, 2.0 if scenario == "hung" else TIMEOUT)
    found = globals()[scenario](ranks, how, Path(root))
    Path(f"{facts}-{ranks.rank}").write_text(json.dumps(found))
    ranks.close()
    sys.exit("lost" in found)  # as a trainer ends; torchrun then ends the others


if __name__ == "__main__":
    main()
