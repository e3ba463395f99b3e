"""A trainer of the SDK alone, with steps of a few milliseconds: items one by one, checkpoints, two procedures.

    python light_trainer.py RUN_DIR ROOT --items 60 [--poison 10,20] [--gates 30] [--log FILE]

An item that is poisoned makes the loss NaN each time it is served; with ``--once`` the first time only. At a step
that is not finite twice running, the trainer waits at its boundary for the sidecar. What it did stands in its log,
a line each, written after it was done.
"""

import argparse
import json
import math
import os
import struct
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import xxhash

from gyrostat import Control, Knob, Telemetry

PATIENCE = 60.0  # seconds at a boundary, and before a gate


class LightTrainer:
    """``cursor`` is the next item; ``finite`` whether the parameters are."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.given = given
        self.step = self.cursor = self.seen = self.nans = 0
        self.passed_over: set[int] = set()
        self.served: set[int] = set()
        self.finite, self.stopping, self.lr_scale = True, False, 1.0
        self.log = os.open(given.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        manifests = _manifests(given.root)
        if manifests:
            self._restore(max(manifests, key=lambda m: (m["segment"], m["step"], m["time"])))
        self.known_bad = {item for m in manifests for item in m["passed_over"]}  # of every life before
        self.last = max((m["last_directive"] for m in manifests), default=0)
        self.telemetry = Telemetry(given.run_dir, checkpoint_root=given.root)
        procedures = {"skip_data": self.skip_data, "rollback": self.rollback, "stop": self.stop}
        self.control = Control(
            self.telemetry, [Knob("lr_scale", lambda: self.lr_scale, self._turn, 0.05, 2.0)], procedures,
            last_directive=self.last, segment=max((m["segment"] for m in manifests), default=0),
        )  # fmt: skip

    def run(self) -> None:
        """To the last item, or until told to stop."""
        self.say(f"began {self.telemetry.incarnation}")
        if (resume := self.control.resume(last_applied=self.last)) is not None:
            self._go_back(resume.checkpoint, resume.digest, self.known_bad | set(resume.pass_over))
            self.say(f"order {resume.number} resume")
            self.control.segment += 1
            self.control.resumed(resume, self.step)
            self.save()
        while self.cursor < self.given.items and not self.stopping:
            self._gate()
            self._take_step()
            self._cross_boundary()
        self.say("done")
        self.telemetry.close()

    def say(self, line: str) -> None:
        os.write(self.log, f"{line}\n".encode())

    # -- a step -----------------------------------------------------------------------------------------

    def _gate(self) -> None:
        if self.cursor not in self.given.gates:
            return
        self.say(f"gate {self.cursor}")
        end = time.monotonic() + PATIENCE
        while not os.path.exists(f"{self.given.log}.{self.cursor}"):
            if time.monotonic() > end:
                raise SystemExit(f"nobody opened gate {self.cursor}")
            time.sleep(0.002)

    def _take_step(self) -> None:
        time.sleep(self.given.pace)  # the work of a step
        item = self.cursor
        poisoned = item in self.given.poison and not (self.given.once and item in self.served)
        self.served.add(item)
        loss = math.nan if poisoned or not self.finite else 0.5
        applied = math.isfinite(loss) or not self.given.guard
        self.step += 1
        self.seen = max(self.seen, item + 1)
        self.nans = 0 if math.isfinite(loss) else self.nans + 1
        if applied:
            self.finite = self.finite and not poisoned
            self._pass_to(item + 1)
        self.telemetry.record(
            self.step, loss=loss, grad_norm=loss * 2, entropy=0.9, step_applied=float(applied),
            params_finite=float(self.finite), suspect_item=float(item),
        )  # fmt: skip
        self.say(f"record {self.telemetry.incarnation} {self.step} {loss}")
        if self.given.every and self.step % self.given.every == 0 and math.isfinite(loss):
            self.save()

    def _pass_to(self, item: int) -> None:
        while item in self.passed_over:
            item += 1
        self.cursor = item

    def _cross_boundary(self) -> None:
        if self.nans >= 2 or (self.nans and not self.finite):
            self.say(f"waiting {self.cursor} {self.step}")
            acks = self.control.apply_within(self.step + 1, PATIENCE)
        else:
            acks = self.control.apply(self.step + 1)
        for ack in acks:
            self.say(f"ack {ack.number} {ack.result} {ack.reason}")

    # -- procedures and knobs -----------------------------------------------------------------------------

    def skip_data(self, arguments: Mapping[str, Any]) -> None:
        self.passed_over |= set(arguments["items"])
        self.nans = 0
        self._pass_to(self.cursor)
        self.say(f"order {arguments['items'][0]} skip_data")

    def rollback(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        self._go_back(arguments["checkpoint"], arguments["digest"], arguments["pass_over"])
        self.say(f"order {self.step} rollback {os.path.basename(arguments['checkpoint'])}")
        return {"step": self.step}

    def stop(self, arguments: Mapping[str, Any]) -> None:
        self.stopping = True
        self.say("order 0 stop")

    def _turn(self, value: float) -> None:
        self.lr_scale = value

    def _go_back(self, path: str, digest: str, items: Any) -> None:
        body = Path(path, "manifest.json").read_bytes()
        if _digest(body) != digest:
            raise ValueError("another checkpoint lies there")
        seen = max(self.seen, self.cursor)
        self._restore(json.loads(body))
        self.passed_over |= set(items)
        self._pass_to(max(self.cursor, seen))

    # -- checkpoints ---------------------------------------------------------------------------------------

    def save(self) -> None:
        """One tensor, and a manifest as the reference trainer writes it; it appears in one rename."""
        name = f"step-{self.step:08d}-s{self.control.segment}-{len(os.listdir(self.given.root))}"
        draft = Path(self.given.root, f".{name}")
        draft.mkdir(mode=0o700)
        weights = _tensor(1.0 if self.finite else math.nan)
        (draft / "model.safetensors").write_bytes(weights)
        manifest = {
            "format": "gyrostat-reference/1", "step": self.step, "segment": self.control.segment,
            "last_directive": self.control.last_directive, "time": time.time(), "data_cursor": self.cursor,
            "data_seen": self.seen, "passed_over": sorted(self.passed_over), "knobs": {"lr_scale": self.lr_scale},
            "files": {"model.safetensors": {"bytes": len(weights), "digest": _digest(weights)}},
        }  # fmt: skip
        (draft / "manifest.json").write_text(json.dumps(manifest))
        draft.rename(Path(self.given.root, name))

    def _restore(self, manifest: Mapping[str, Any]) -> None:
        self.step, self.cursor, self.seen = manifest["step"], manifest["data_cursor"], manifest["data_seen"]
        self.passed_over = set(manifest["passed_over"])
        self.finite, self.nans = True, 0


def _tensor(value: float) -> bytes:
    head = json.dumps({"weight": {"dtype": "F32", "shape": [8], "data_offsets": [0, 32]}}).encode()
    head += b" " * (-len(head) % 8)
    return struct.pack("<Q", len(head)) + head + struct.pack("<8f", *[value] * 8)


def _digest(data: bytes) -> str:
    return f"xxh3_128:{xxhash.xxh3_128_hexdigest(data)}"


def _manifests(root: str) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in Path(root).glob("step-*/manifest.json")]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("run_dir")
    parser.add_argument("root")
    parser.add_argument("--items", type=int, default=60)
    parser.add_argument("--poison", type=_numbers, default=frozenset())
    parser.add_argument("--gates", type=_numbers, default=frozenset())
    parser.add_argument("--once", action="store_true")
    parser.add_argument("--guard", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--every", type=int, default=5)
    parser.add_argument("--pace", type=float, default=0.002)
    parser.add_argument("--log", required=True)
    given = parser.parse_args()
    os.makedirs(given.root, mode=0o700, exist_ok=True)
    LightTrainer(given).run()
    return 0


def _numbers(text: str) -> frozenset[int]:
    return frozenset(map(int, text.split(",")))


if __name__ == "__main__":
    sys.exit(main())
