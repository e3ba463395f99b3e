"""CheckpointSource: which checkpoints there are and whether they are fit, as items for a batch.

The loop tells it the root when a Hello names it, polls it at every tick, drains it in every pass, and asks it to
recheck a checkpoint right before a directive names it. Every manifest is verified once, newest first, and pinned
before: rotation must not take a checkpoint while it is looked at. A checkpoint that was told of and has gone, or whose
manifest is another, is told of again as unfit; a pin is told of once the checkpoint itself has gone. Not promised: that
a file which changes without its manifest is noticed between verification and use; the recheck sees its size, and the
trainer verifies what it loads.
"""

import os
from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple

from gyrostat_agent.checkpoints import foreign
from gyrostat_agent.checkpoints.copier import Copier
from gyrostat_agent.checkpoints.layouts.folder import Listed
from gyrostat_agent.checkpoints.pins import Pins
from gyrostat_agent.checkpoints.reference import (
    MANIFEST,
    CheckpointError,
    Limits,
    Manifest,
    Stamp,
    denied,
    find,
    measure,
    opened_folder,
    read_manifest,
    seen,
    stamp,
    told,
    unread,
)
from gyrostat_agent.checkpoints.verifier import Verifier
from gyrostat_agent.checkpoints.watch import RootWatch
from gyrostat_rules.certify import name_of
from gyrostat_rules.inputs import CheckpointSeen, Fit
from gyrostat_rules.keeping import Keep

_LIMITS = Limits()
_REREAD_S = 20.0  # that the loop may stand before a rollback; a directive is good for a minute
_REMEMBERED = 64  # verdicts on what has gone, for its pin


class Known(NamedTuple):
    """A checkpoint that was found, and what was told of it; None while it is being verified."""

    stamp: Stamp
    verdict: CheckpointSeen | None = None
    manifest: Manifest | None = None  # kept, so that a recheck need not read it while its stamp is the same
    files: Mapping[str, Listed] | None = None  # of a foreign one, as they were when it was found


class CheckpointSource:
    """``wake`` is called from another thread when it is worth draining before the next tick.

    ``fault`` says why the root cannot be listed, or is ''. While it cannot, nothing is called gone.
    ``pinning``: whether pins are made and let go; those that are there are found all the same. ``pin_bytes`` may be
    copied for it where neither a clone nor a link can be made.
    """

    def __init__(
        self, verifier: Verifier, wake: Callable[[], None] = lambda: None, *, pinning: bool = False,
        pin_bytes: int = 0, copier: Copier | None = None,
    ) -> None:  # fmt: skip
        self._verifier, self._pinning, self._pin_bytes, self._copier = verifier, pinning, pin_bytes, copier
        self._pins = Pins("")
        self._past: dict[Stamp, Known] = {}
        self._foreign: set[str] = set()
        self._watch = RootWatch(wake)
        self._root = ""
        self._place: tuple[int, int] | None = None  # device and inode of the root when something was last found there
        self._due = False
        self._known: dict[str, Known] = {}
        self._asked: Counter[str] = Counter()
        self.fault = ""

    def set_root(self, path: str) -> None:
        """Look under ``path`` from now on; it need not exist yet. '' looks nowhere."""
        root = os.path.abspath(path) if path else ""
        if root != self._root:
            self._root, self._known, self._past, self._place = root, {}, {}, None
            self._pins.close()
            self._pins = Pins(root, self._pin_bytes, self._copier)
        self.poll()

    def poll(self) -> None:
        """Time has passed: look at the root when it is drained next."""
        if self._root:
            self._watch.follow(self._root)
            self._due = True

    def drain(self) -> list[CheckpointSeen]:
        """What is new: verdicts that came in, and what has become of checkpoints told of before."""
        items = []
        if self._watch.rang() or self._due:
            self._due = False
            items = self._look()
        return items + self._verdicts()

    @property
    def pin_fault(self) -> str:
        """Why a checkpoint could not be kept from rotation, or ''."""
        return self._pins.fault

    def keep(self, keep: Keep) -> None:
        """Let go of the pins that are not needed."""
        if self._pinning:
            verdicts = [known.verdict for known in self._known.values() if known.verdict]
            digests = {name_of(seen.path): seen.digest for seen in verdicts if seen.fit == Fit.VERIFIED}
            self._pins.let_go(keep, digests)

    def recheck(self, path: str, digest: str) -> CheckpointSeen:
        """Is the checkpoint still the one with this digest, and all there? Reads the manifest and the files' sizes.

        One without a manifest, whose trainer proves nothing when it loads, is read whole once more, in a child and for
        at most 20 seconds; one that is too large for that is known by the sizes and times of its files. Answers with
        what verification came to; a digest that this source has not seen verified is believed, because whoever names it
        has it from a verdict.
        """
        path = os.path.abspath(path)
        known = self._known.get(path)
        verdict = known.verdict if known else None
        if known and verdict and known.files is not None:
            found = _foreign(path, digest, known.files, verdict)
            return found if found.fit != Fit.VERIFIED else self._read_anew(found)
        try:
            with opened_folder(path) as folder:
                manifest = _untouched(path, known) or read_manifest(folder, _LIMITS)
                problems = measure(folder, manifest)
        except CheckpointError as error:
            return _spoiled(verdict, str(error)) if verdict else unread(path, str(error))
        if manifest.digest != digest:
            why = f"changed after it was verified: its digest is {manifest.digest}, not {digest}"
            return seen(path, manifest, Fit.UNFIT, why)
        if problems:
            return seen(path, manifest, Fit.UNFIT, told(problems))
        return verdict if verdict and verdict.digest == digest else seen(path, manifest, Fit.VERIFIED)

    def _read_anew(self, verdict: CheckpointSeen) -> CheckpointSeen:
        """The verdict, where what is there now has the same digest or could not be read in time."""
        now = self._verifier.reread(verdict.path, _REREAD_S)
        if now is None or (now.fit, now.digest) == (verdict.fit, verdict.digest):
            return verdict
        why = now.why or f"its digest is {now.digest}, not {verdict.digest}"
        return _spoiled(verdict, f"changed after it was verified: {why}")

    def close(self) -> None:
        """Stop watching and copying; the verifier belongs to whoever made it."""
        self._watch.close()
        self._pins.close()

    def _look(self) -> list[CheckpointSeen]:
        try:
            own, theirs = find(self._root), foreign.find(self._root)
        except OSError as error:
            self.fault = f"{self._root} cannot be listed: {denied(error, self._root) or error.strerror}"
            return []
        self.fault = self._vanished(own or theirs)
        if self.fault:
            return []
        found, (own_pins, their_pins) = theirs | own, self._pins.find()
        names = {os.path.basename(path) for path in found}
        pins = {path: at for path, at in (their_pins | own_pins).items() if os.path.basename(path) not in names}
        self._foreign = (theirs.keys() - own.keys()) | (their_pins.keys() - own_pins.keys())
        found |= pins
        items = [item for path in self._known.keys() - found.keys() for item in self._gone(path)]
        for path in sorted(found, key=lambda each: found[each].mtime_ns, reverse=True):
            items += self._found(path, found[path])
        return items

    def _vanished(self, found: Mapping[str, Stamp]) -> str:
        """Why the root is not believed to be empty, or '': a mount that is not there has deleted nothing."""
        try:
            now = os.stat(self._root)
            place = now.st_dev, now.st_ino
        except OSError:
            place = None
        if found or not self._known or place == self._place:
            self._place = place if found else self._place
            return ""
        what = "is not there any more" if place is None else "is another folder now, and empty"
        return f"{self._root} {what}: is it mounted? What was there is not called gone, and cannot be gone back to"

    def _gone(self, path: str) -> list[CheckpointSeen]:
        known = self._known.pop(path)
        verdict = known.verdict
        if verdict and verdict.fit != Fit.UNFIT:
            self._past = dict([*self._past.items()][1 - _REMEMBERED :]) | {known.stamp: known}
        return [_spoiled(verdict, Fit.GONE)] if verdict else []

    def _found(self, path: str, stamp: Stamp) -> list[CheckpointSeen]:
        known = self._known.get(path)
        if known and known.stamp == stamp:
            return []
        theirs = foreign.files(path) if path in self._foreign else None
        past = self._past.get(stamp)
        if past and past.verdict and past.files == theirs:  # hard links to what has been verified: nothing is read anew
            self._known[path] = past._replace(verdict=past.verdict._replace(path=path), manifest=None)
            return [past.verdict._replace(path=path)]
        if self._pinning and os.path.dirname(path) == self._root:
            self._pin(path, theirs)
        self._known[path] = Known(stamp, files=theirs)
        self._asked[path] += 1
        self._verifier.start(path)
        verdict = known.verdict if known else None
        changed = verdict is not None and verdict.fit != Fit.UNFIT
        return [_spoiled(verdict, "changed after it was verified")] if verdict and changed else []

    def _pin(self, path: str, theirs: Mapping[str, Listed] | None) -> None:
        """Before it is verified: rotation does not wait. An ill one is let go of when that is known."""
        if theirs is not None:
            self._pins.make(path, theirs)
            return
        try:
            with opened_folder(path) as folder:
                files = read_manifest(folder, _LIMITS).files
        except CheckpointError:
            return  # nobody will go back to it; the verifier says why
        self._pins.make(path, (*files, MANIFEST))

    def _verdicts(self) -> list[CheckpointSeen]:
        return [verdict for verdict in self._verifier.results() if self._is_news(verdict)]

    def _is_news(self, verdict: CheckpointSeen) -> bool:
        """False for a verdict on what has gone, or has been changed and asked about again, meanwhile."""
        path = verdict.path
        self._asked[path] -= 1
        if self._asked[path] > 0:
            return False
        del self._asked[path]
        if path not in self._known:
            return False
        manifest = None if verdict.fit == Fit.UNFIT else _manifest(path, verdict.digest)
        self._known[path] = self._known[path]._replace(verdict=verdict, manifest=manifest)
        return True


def _foreign(path: str, digest: str, before: Mapping[str, Listed], verdict: CheckpointSeen) -> CheckpointSeen:
    """A foreign one is what was verified while no file of it has another size or time."""
    if verdict.digest != digest:
        return _spoiled(verdict, f"changed after it was verified: its digest is {verdict.digest}, not {digest}")
    now = foreign.files(path)
    if now != before:
        names = sorted(name for name in {*before, *(now or {})} if before.get(name) != (now or {}).get(name))
        return _spoiled(verdict, Fit.GONE if now is None else f"changed after it was verified: {', '.join(names[:3])}")
    return verdict


def _untouched(path: str, known: Known | None) -> Manifest | None:
    return known.manifest if known and known.manifest and stamp(path) == known.stamp else None


def _manifest(path: str, digest: str) -> Manifest | None:
    """The manifest at ``path`` where it is the one that was verified."""
    try:
        with opened_folder(path) as folder:
            manifest = read_manifest(folder, _LIMITS)
    except CheckpointError:
        return None
    return manifest if manifest.digest == digest else None


def _spoiled(verdict: CheckpointSeen, why: str) -> CheckpointSeen:
    return verdict._replace(fit=Fit.UNFIT, why=why)
