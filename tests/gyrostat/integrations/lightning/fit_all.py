"""Several short fits in one process, for importing Lightning takes longer than all of them: ``fit_all.py FOLDER``."""

import json
import sys
from pathlib import Path
from typing import Any

import torch
from lightning_tiny import fit
from sdk_runs import directive, send

from gyrostat.integrations.lightning import GyrostatCallback
from gyrostat.wire import KnobChange, Resume, RunDirectory


class Sidecar:
    """Rings for a directive when a step is over; stands before the callback in the list."""

    state_key = "sidecar"

    def __init__(self, callback: GyrostatCallback, run: Path, orders: dict[int, dict[str, Any]]) -> None:
        self.callback, self.run, self.orders, self.sent = callback, run, orders, 0

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: {}

    def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
        if order := self.orders.get(trainer.global_step):
            self.sent += 1
            send(self.run, directive(self.callback._fit.telemetry, self.sent, **order))


def same(a: dict[str, Any], b: dict[str, Any]) -> bool:
    """Every tensor bit for bit."""
    return a.keys() == b.keys() and all(torch.equal(a[k], b[k]) for k in a)


def healthy(root: Path) -> dict[str, Any]:
    """The same fit without, with, and with the callback but no run; with micro-batches and a validation."""
    weights = []
    for name in ("plain", "watched", "by hand"):
        callbacks = [] if name == "plain" else [GyrostatCallback(root / "kept", every=4)]
        run = root / "healthy" if name == "watched" else None
        trainer = fit(root, callbacks, 8, run=run, accumulate_grad_batches=2, val_check_interval=4)
        weights.append(trainer.model.state_dict())
    return {"watched": same(weights[0], weights[1]), "by_hand": same(weights[0], weights[2])}


def poisoned(root: Path) -> dict[str, Any]:
    """A loss that is NaN at step 5, guarded."""
    trainer = fit(root, [GyrostatCallback()], 8, run=root / "poisoned", broken=(5,))
    after = trainer.model.after
    return {"untouched": same(after[4], after[5]), "moved": not same(after[5], after[6])}


def steered(root: Path) -> dict[str, Any]:
    """Half the learning rate from step 3 on, half the clipping, a checkpoint, and a stop."""
    callback = GyrostatCallback(root / "asked")
    knobs = (KnobChange("lr_scale", 1.0, 0.5), KnobChange("max_grad_norm", 1.0, 0.5))
    orders = {2: {"knobs": knobs}, 5: {"procedure": "checkpoint"}, 6: {"procedure": "stop"}}
    sidecar = Sidecar(callback, root / "steered", orders)
    (root / "steered").mkdir(mode=0o700)
    trainer = fit(root, [sidecar, callback], 50, run=root / "steered")
    rate = trainer.optimizers[0].param_groups[0]["lr"]
    return {"steps": trainer.global_step, "rate": rate, "clip": trainer.gradient_clip_val}


def unguarded(root: Path) -> dict[str, Any]:
    """A loss that is NaN at step 3, left to the optimizer."""
    fit(root, [GyrostatCallback(guard=False)], 4, run=root / "unguarded", broken=(3,))
    return {}


def ask(run: Path, number: int, checkpoint: Path, **more: Any) -> None:
    """Leave what a sidecar leaves for a process that it has restarted."""
    path = Path(RunDirectory(str(run)).resume)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.write_bytes(Resume(number, run.name, str(checkpoint), "", 3, 4e9, {"lr_scale": 0.25}, **more).encode())
    path.chmod(0o600)


def resumed(root: Path) -> dict[str, Any]:
    """Processes that start again where ``resume.json`` says so: one that does, and one that does not take it."""
    run, first = root / "resumed", GyrostatCallback(root / "left", every=3)
    fit(root, [first], 8, run=run)
    told = {"newest": first.ckpt_path()}
    for number, name in ((4, "taken"), (9, "refused")):
        ask(run, number, root / "left/checkpoint-3")
        callback = GyrostatCallback(root / "left", every=50)
        told[name] = callback.ckpt_path()
        fit(root, [callback], 6, run=run, ckpt_path=told[name] if name == "taken" else None)
    told["after"] = GyrostatCallback(root / "left").ckpt_path()
    return told


def passed_over(root: Path) -> dict[str, Any]:
    """A restart with items to be passed over, by a callback that can tell the data so, and by one that cannot."""
    run, items = root / "passed", list[int]()
    fit(root, [GyrostatCallback(root / "items", every=3)], 4, run=run)
    for number, told in ((4, items.extend), (9, None)):
        ask(run, number, root / "items/checkpoint-3", pass_over=(17, 30))
        callback = GyrostatCallback(root / "items", pass_over=told)
        fit(root, [callback], 5, run=run, ckpt_path=callback.ckpt_path())
    return {"items": items}


def unwritable(root: Path) -> dict[str, Any]:
    """A folder for checkpoints that cannot be made, because a file stands in its way."""
    (root / "file").touch()
    trainer = fit(root, [GyrostatCallback(root / "file" / "kept", every=2)], 5, run=root / "unwritable")
    return {"steps": trainer.global_step}


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    fits = (healthy, poisoned, unguarded, steered, resumed, passed_over, unwritable)
    print("RESULT", json.dumps({f.__name__: f(folder) for f in fits}))
