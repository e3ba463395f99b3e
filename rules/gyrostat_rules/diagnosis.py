"""What an imbalance of experts really is: asked before the router's balance loss is raised.

Raising it evens the load, and is right where the load is what is wrong. Where rollouts and training route
apart, or experts have specialised on a task that goes well, it degrades a healthy policy.
"""

import math
from collections.abc import Mapping
from statistics import fmean, median
from typing import Any, NamedTuple

from gyrostat_rules import experts
from gyrostat_rules.profile import START, Told, divergence, named, newest, reference, tellers
from gyrostat_rules.state import Incident, State

IMBALANCE, DEAD, MISMATCH, SPECIALISATION, EVEN = "imbalance", "dead", "mismatch", "specialisation", "even"
_RHO_SKEWED, _DEAD_MANY = 0.5, 0.2  # as of the warning
_DEAD_FEW = 0.1  # up to which a load may be skewed and healthy: specialists are busy, all of them
_REST_EVEN = 0.7  # rho_eff of the experts that live
_MISMATCH_CAP = 1e-2  # nats a token, of a mixture of experts; 3 of 5 steps
_FLIPS_CAP = 0.2  # a tenth of the routes differ in healthy runs too
_LAG_GREW = 3  # policy versions above the most of the run's first steps
_SHIFT = 0.1  # nats of KL(f || f_ref); healthy runs of the reference trainer come to 0.09 in 150 steps
_KEPT = 0.8  # of the first rho_eff, and of the first reward: what fell below has changed
_FALL = 0.02  # a step, of the logarithm of entropy: faster is no settling


class Diagnosis(NamedTuple):
    """``word``: imbalance, dead (some unused, the rest even), mismatch, specialisation, or even: nothing is skewed."""

    word: str
    why: str
    evidence: Mapping[str, Any] = {}

    @property
    def router_loss_helps(self) -> bool:
        """True where a larger balance loss is the remedy; elsewhere it does harm."""
        return self.word in (IMBALANCE, DEAD)


def diagnose(state: State, subject: Incident | Mapping[str, str]) -> Diagnosis:
    """Say what the matter is with the experts of an incident, or of an alert's labels (role, rank, layer, loop).

    A mismatch is looked for first and in every process: it is the graver cause, and its load may be skewed too.
    """
    labels = labels_of(state, subject) if isinstance(subject, Incident) else subject
    everyone = tellers(state)
    if found := next((m for t in everyone if (m := _mismatch(t))), None):
        return found
    wanted = (labels.get("role", "trainer"), labels.get("rank", "0"))
    told = next((t for t in everyone if (t.process.role, str(t.process.rank)) == wanted), None)
    if told is None or experts.RHO_EFF not in told.windows:
        return Diagnosis(EVEN, "no expert counts have been told")
    return _of_load(told, _row(told, labels))


def labels_of(state: State, incident: Incident) -> Mapping[str, str]:
    """The labels of the incident's alert that names a layer, or of its first."""
    alerts = [state.alerts[key] for key in incident.alerts if key in state.alerts]
    named = next((a for a in alerts if "layer" in a.labels), alerts[0] if alerts else None)
    return named.labels if named else {}


def _row(told: Told, labels: Mapping[str, str]) -> str:
    """The end of the names of the row's series; '' for the least balanced."""
    name = f"/{labels.get('layer')}/{labels.get('loop')}"
    return name if experts.RHO_EFF + name in told.windows else ""


def _mismatch(told: Told) -> Diagnosis | None:
    windows = told.windows
    for name, cap, what in (
        ("mismatch_kl", _MISMATCH_CAP, "training and rollouts disagree: mismatch_kl is"),
        ("route_flip_rate", _FLIPS_CAP, "training and rollouts route apart: route_flip_rate is"),
    ):
        values = newest(named(windows, name), 5)
        if sum(v > cap for v in values) >= 3:
            return Diagnosis(MISMATCH, f"{what} {median(values):.3g} (cap {cap:g})", {name: values[-1], "cap": cap})
    lags, first = newest(windows.get("policy_lag"), 5), reference(windows.get("policy_lag"), 0, 10, least=1)
    if len(lags) == 5 and lags == sorted(lags) and lags[-1] > lags[0] and lags[-1] >= first + _LAG_GREW:
        why = f"rollouts fall behind: policy_lag grew to {lags[-1]:.0f} versions"
        return Diagnosis(MISMATCH, why, {"policy_lag": lags[-1], "policy_lag_start": first})
    return None


def _of_load(told: Told, row: str) -> Diagnosis:
    rho_window, dead_window = told.windows[experts.RHO_EFF + row], told.windows.get(experts.DEAD_SHARE + row)
    pairs = list(zip(newest(rho_window, 5), newest(dead_window, 5), strict=False))
    skewed = [p for p in pairs if p[0] < _RHO_SKEWED or p[1] > _DEAD_MANY]  # counted as the detector counts them
    chosen = skewed if len(skewed) >= 3 else pairs or [(1.0, 0.0)]
    rho, dead = median(r for r, _ in chosen), median(d for _, d in chosen)
    evidence: dict[str, Any] = {"rho_eff": rho, "dead_share": dead}
    if len(skewed) < 3:
        return Diagnosis(EVEN, f"the load is even enough: rho_eff {rho:.2f}, {dead:.0%} dead", evidence)
    if dead > _DEAD_MANY:
        rest = min(1.0, rho / (1.0 - dead)) if dead < 1.0 else 0.0
        evidence["rho_eff_living"] = rest
        if rest >= _REST_EVEN:
            return Diagnosis(DEAD, f"{dead:.0%} of the experts are unused and the rest is even ({rest:.2f})", evidence)
        return Diagnosis(IMBALANCE, f"rho_eff is {rho:.2f}, {dead:.0%} are dead, and the rest is skewed", evidence)
    was = reference(rho_window)
    evidence |= {"rho_reference": was, "kl_from_start": divergence(told.windows)}
    if dead > _DEAD_FEW:
        return Diagnosis(IMBALANCE, f"rho_eff is {rho:.2f}, and {dead:.0%} of the experts are dead", evidence)
    if reason := _unlike_start(told, rho, was, evidence["kl_from_start"]):
        return Diagnosis(IMBALANCE, f"rho_eff is {rho:.2f}, and {reason}", evidence)
    why = f"rho_eff {rho:.2f} is this model's own (at first {was:.2f}); reward and entropy do not fall"
    return Diagnosis(SPECIALISATION, why, evidence)


def _unlike_start(told: Told, rho: float, was: float, shift: float) -> str:
    """Why a skewed load is no benign specialisation, or ''."""
    if math.isnan(was):
        return f"there are no {START} steps to know this model's own profile by"
    if rho < _KEPT * was:
        return f"it began at {was:.2f}"
    if shift > _SHIFT:
        return f"other experts are used than at first (KL {shift:.2g} nats)"
    rewards = named(told.windows, "reward")
    first, now = reference(rewards, least=5), fmean(newest(rewards, 5) or [math.nan])
    if now < first - (1.0 - _KEPT) * abs(first):
        return f"the reward fell from {first:.3g} to {now:.3g}"
    entropies = [v for v in newest(named(told.windows, "entropy"), 20) if v > 0]
    fall = math.log(fmean(entropies[:5]) / fmean(entropies[-5:])) / 15 if len(entropies) == 20 else 0.0
    return f"entropy falls by {fall:.1%} a step" if fall > _FALL else ""
