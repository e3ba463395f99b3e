"""Diagnosis of experts: whether raising the router's balance loss would help or harm."""

import math

import pytest
from rows_told import Rows, recorded

from gyrostat.wire import ExpertLoad
from gyrostat_rules.diagnosis import diagnose
from gyrostat_rules.profile import divergence, tellers
from gyrostat_rules.state import Alert, Incident

LABELS = {"role": "trainer", "rank": "0", "layer": "0", "loop": "0"}
EVEN = (1000,) * 8
SPECIAL = (6000, 800, 300, 200, 200, 200, 200, 101)
OTHER = (101, 200, 200, 200, 200, 300, 800, 6000)
HEALTHY = {"reward": 0.6, "entropy": 0.5, "mismatch_kl": 1e-3, "policy_lag": 1.0}


@pytest.mark.parametrize(
    ("run", "step", "word", "helps"),
    [
        pytest.param("clean-0", 50, "even", False, id="healthy"),
        pytest.param("expert_imbalance-0", 30, "imbalance", True, id="base without balance"),
        pytest.param("expert_imbalance-1", 3, "imbalance", True, id="base without balance, at once"),
        pytest.param("router_lr-0", 30, "imbalance", True, id="router learns too fast"),
        pytest.param("stale_rollouts-0", 30, "mismatch", False, id="rollouts left behind"),
    ],
)
def test_recorded_faults(run: str, step: int, word: str, helps: bool) -> None:
    """Each recorded fault is called what it is, a few steps after it struck."""
    rows = next(r for r in recorded(run) if r.process.last_step == step)
    found = diagnose(rows.state, LABELS)
    assert (found.word, found.router_loss_helps) == (word, helps)


def test_a_recorded_mismatch_is_told_soon() -> None:
    """Rollouts frozen at step 20 are told three steps later, for the loss of the router must not be touched."""
    words = {r.process.last_step: diagnose(r.state, LABELS).word for r in recorded("stale_rollouts-1")}
    assert next(step for step, word in words.items() if word == "mismatch") <= 24
    assert set(list(words.values())[25:]) == {"mismatch"}


def test_experts_that_are_dead_while_the_rest_is_even() -> None:
    """Half unused and the other half even is not skew: the word says dead, and the loss helps."""
    found = diagnose(Rows().loads((2000,) * 4 + (0,) * 4, 5, **HEALTHY).state, LABELS)
    assert (found.word, found.router_loss_helps) == ("dead", True)
    assert found.evidence["rho_eff_living"] == pytest.approx(1.0, abs=0.01)


def test_a_skewed_rest_is_an_imbalance() -> None:
    """Where those that live are skewed as well, dead experts are only a part of it."""
    found = diagnose(Rows().loads((6000, 900, 500, 400, 200, 0, 0, 0), 5, **HEALTHY).state, LABELS)
    assert found.word == "imbalance"


def test_specialists_are_left_alone() -> None:
    """A load that is skewed as it was at first, all experts alive, reward and entropy well, must not be evened."""
    found = diagnose(Rows().loads(SPECIAL, 40, **HEALTHY).state, LABELS)
    assert (found.word, found.router_loss_helps) == ("specialisation", False)
    assert found.evidence["kl_from_start"] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(
    ("first", "then", "later", "says"),
    [
        pytest.param(EVEN, SPECIAL, {}, "it began at 1.00", id="it was even"),
        pytest.param(SPECIAL, OTHER, {}, "other experts", id="other experts"),
        pytest.param(SPECIAL, SPECIAL, {"reward": 0.3}, "the reward fell", id="reward"),
    ],
)
def test_what_changed_is_no_specialisation(
    first: tuple[int, ...], then: tuple[int, ...], later: dict[str, float], says: str
) -> None:
    """The load, its experts or the reward are not what they were: a true imbalance, and the reason is said."""
    found = diagnose(Rows().loads(first, 25, **HEALTHY).loads(then, 6, **{**HEALTHY, **later}).state, LABELS)
    assert (found.word, says in found.why) == ("imbalance", True), found.why


def test_entropy_that_falls_is_no_specialisation() -> None:
    """Experts that narrow while the policy narrows are not benign."""
    rows = Rows()
    for i in range(40):
        rows.loads(SPECIAL, 1, **{**HEALTHY, "entropy": 0.9 * 0.95**i})
    assert diagnose(rows.state, LABELS).word == "imbalance"


def test_unused_experts_are_no_specialists() -> None:
    """A load that was skewed from the first step on is an imbalance all the same where experts lie idle."""
    found = diagnose(Rows().loads((6000, 800, 300, 300, 200, 200, 200, 0), 40, **HEALTHY).state, LABELS)
    assert (found.word, "dead" in found.why) == ("imbalance", True)


def test_without_a_profile_nothing_is_benign() -> None:
    """Before twenty steps a skewed load cannot be known to be the model's own."""
    found = diagnose(Rows().loads(SPECIAL, 10, **HEALTHY).state, LABELS)
    assert (found.word, "no 20 steps" in found.why) == ("imbalance", True)


@pytest.mark.parametrize(
    "series",
    [{"mismatch_kl": 0.02}, {"actor/mismatch_kl": 0.02}, {"route_flip_rate": 0.4}],
    ids=["kl", "prefixed kl", "routes flip"],
)
def test_a_mismatch_leads_whatever_the_load(series: dict[str, float]) -> None:
    """Where training and rollouts route apart, evening the load makes it worse, also where the load is skewed."""
    values = {n: v for n, v in HEALTHY.items() if n != "mismatch_kl"}
    rows = Rows().loads(EVEN, 20, **{**values, **dict.fromkeys(series, 1e-3)})
    rows.loads(SPECIAL, 2, **{**values, **series})
    assert diagnose(rows.state, LABELS).word != "mismatch"
    found = diagnose(rows.loads(SPECIAL, 1, **{**values, **series}).state, LABELS)
    assert (found.word, found.router_loss_helps) == ("mismatch", False)


@pytest.mark.parametrize(
    ("first", "lag", "grows"),
    [(1.0, 1.0, True), (1.0, 0.0, False), (6.0, 0.0, False)],
    ids=["grows", "steady", "grew once"],
)
def test_a_lag_counts_where_it_grows(first: float, lag: float, grows: bool) -> None:
    """An asynchronous trainer is always some versions behind; one that falls behind step by step is not."""
    rows = Rows().loads(EVEN, 20, **HEALTHY)
    for i in range(6):
        rows.loads(EVEN, 1, **{**HEALTHY, "policy_lag": first + lag * i})
    assert (diagnose(rows.state, LABELS).word == "mismatch") is grows


def test_an_incident_is_diagnosed_by_the_alert_that_names_a_layer() -> None:
    """Of several alerts the one about experts says where to look."""
    rows = Rows()
    for _ in range(5):
        rows.tell(ExpertLoad(1, 2, 8, EVEN + (2000,) * 4 + (0,) * 4), **HEALTHY)
    for key, labels in {"a": {"role": "trainer", "rank": "0"}, "b": {**LABELS, "loop": "0"}}.items():
        rows.state.alerts[key] = Alert("R", labels, "firing", 1, 1.0, 1, 5, 0.0, "")
    incident = Incident("i1", "experts", "open", 1, 1, 1.0, ["a", "b"], 5)
    assert diagnose(rows.state, incident).word == "even"
    rows.state.alerts["b"].labels["loop"] = "1"
    assert diagnose(rows.state, incident).word == "dead"
    assert diagnose(rows.state, {"role": "trainer", "rank": "0"}).word == "dead"  # the worst, where none is named


@pytest.mark.parametrize("rank", ["0", "3"])
def test_nothing_known_helps_nothing(rank: str) -> None:
    """No counts, or no such process: no reason to touch the router."""
    found = diagnose(Rows().tell(**HEALTHY).state, {**LABELS, "rank": rank})
    assert (found.word, found.router_loss_helps) == ("even", False)


def test_the_distance_from_the_profile() -> None:
    """KL of the newest shares from the first ones, of the layer that has moved most; not known before a profile."""
    rows = Rows().loads((3000, 1000), 19)
    assert math.isnan(divergence(tellers(rows.state)[0].windows))
    rows.loads((3000, 1000), 1)
    rows.loads((1000, 3000), 5)
    assert divergence(tellers(rows.state)[0].windows) == pytest.approx(0.5 * math.log(3), rel=0.01)
