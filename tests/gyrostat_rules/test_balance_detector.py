"""Balance of experts: which layer and loop, how soon, since when; and the series that it is read from."""

import random

import pytest
from rows_told import Rows, alarms, first_reading

from gyrostat.wire import ExpertLoad
from gyrostat_rules import experts
from gyrostat_rules.detectors import Reading
from gyrostat_rules.detectors.balance import ExpertBalance, expert_balance

WARN, CRITICAL = ExpertBalance(), ExpertBalance(rho_below=0.3, dead_above=0.4)
EVEN, SKEWED = (1000,) * 8, (6000, 800, 300, 200, 200, 200, 200, 100)
HALF = (2000,) * 4 + (0,) * 4


def read(rows: Rows, params: ExpertBalance = WARN) -> list[Reading]:
    """What the detector finds after the newest row."""
    return rows.read(expert_balance, params)


def test_healthy_runs_are_silent() -> None:
    """Recorded healthy runs have no alarm, of either level, nor against their own start."""
    for params in (WARN, CRITICAL, ExpertBalance(relative=0.7)):
        assert alarms(["clean-0", "clean-1"], expert_balance, params)[0] == 0


@pytest.mark.parametrize(
    ("run", "params", "latest", "onset"),
    [
        pytest.param("expert_imbalance-0", WARN, 3, 1, id="a base trained without balance"),
        pytest.param("expert_imbalance-1", WARN, 3, 1, id="another"),
        pytest.param("router_lr-0", WARN, 5, 2, id="router learns too fast"),
        pytest.param("divergence-0", CRITICAL, 24, 21, id="divergence at step 20"),
    ],
)
def test_faults_are_told_within_a_few_steps(run: str, params: ExpertBalance, latest: int, onset: int) -> None:
    """An imbalance is told three steps after it appears, also from the first row on, and dated to its beginning."""
    found = first_reading(run, expert_balance, params)
    assert found and found[0] <= latest
    assert found[1].onset == onset


@pytest.mark.parametrize("counts", [SKEWED, HALF], ids=["skewed", "dead"])
def test_three_of_five_are_needed(counts: tuple[int, ...]) -> None:
    """Two bad steps are chance; the third is told, and the onset is the first of them."""
    rows = Rows().loads(EVEN, 10).loads(counts, 1).loads(EVEN, 1).loads(counts, 1)
    assert not read(rows)
    (reading,) = read(rows.loads(counts, 1))
    assert reading.onset == 11
    assert reading.labels == {"role": "trainer", "rank": "0", "layer": "0", "loop": "0"}


def test_each_layer_and_loop_is_its_own() -> None:
    """One bad loop of one layer is named, with its counts as evidence, and the others stay silent."""
    rows = Rows()
    for _ in range(4):
        rows.tell(ExpertLoad(2, 2, 8, EVEN * 3 + SKEWED))
    (reading,) = read(rows)
    assert (reading.labels["layer"], reading.labels["loop"]) == ("1", "1")
    assert reading.evidence["assignments"] == sum(SKEWED)
    assert reading.evidence["top_share"] == pytest.approx(0.75)
    assert reading.evidence["load_entropy"] == pytest.approx(experts.evenness(SKEWED))
    assert "layer 1 loop 1" in reading.why


def test_of_many_layers_the_worst_is_told() -> None:
    """More rows than have series of their own: one alert, and it says which layer is worst now."""
    rows = Rows()
    for _ in range(4):
        rows.tell(ExpertLoad(70, 1, 8, EVEN * 42 + SKEWED + EVEN * 27))
    (reading,) = read(rows)
    assert "layer" not in reading.labels
    assert (reading.evidence["layer"], reading.evidence["loop"]) == (42, 0)


def test_dead_experts_of_another_row_than_the_worst_are_told() -> None:
    """The dead share is the highest of any row, also where another row is less even."""
    uneven, some_dead = (2500, 2500, 500, 500, 500, 500, 500, 500), (1000,) * 6 + (0,) * 2
    load = ExpertLoad(70, 1, 8, uneven + some_dead + EVEN * 68)
    assert read(Rows().tell(load).tell(load).tell(load))
    assert experts.balance(uneven).rho_eff < experts.balance(some_dead).rho_eff


def test_a_relative_rule_knows_an_uneven_model() -> None:
    """A model that is uneven by nature is silent until it is worse than it was; before its profile nothing is said."""
    uneven, worse = (4000, 1500, 1000, 500, 400, 300, 200, 100), (7400, 100, 100, 100, 100, 100, 50, 50)
    params = ExpertBalance(relative=0.7)
    rows = Rows().loads(uneven, 19)
    assert read(rows) and not read(rows, params)
    assert not read(rows.loads(uneven, 20), params)
    (reading,) = read(rows.loads(worse, 3), params)
    assert reading.evidence["rho_reference"] == pytest.approx(experts.balance(uneven).rho_eff)
    assert reading.onset == 40


def test_a_relative_rule_never_alarms_above_the_level() -> None:
    """A fall from very even to fairly even is no failure: the level is the cap of the relative limit."""
    rows = Rows().loads(EVEN, 25).loads((2000, 1500, 1000, 1000, 800, 700, 600, 400), 10)
    assert not read(rows, ExpertBalance(relative=0.95))
    assert not read(rows.loads(SKEWED, 2), ExpertBalance(relative=0.95))
    assert read(rows.loads(SKEWED, 1), ExpertBalance(relative=0.95))


def test_a_row_that_is_told_no_more_is_not_judged() -> None:
    """A layer that gets too few tokens of late, or whose steps were undone, has no word on the present."""
    rows = Rows()
    for _ in range(5):
        rows.tell(ExpertLoad(1, 2, 8, EVEN + SKEWED))
    assert read(rows)
    for _ in range(25):
        rows.tell(ExpertLoad(1, 2, 8, EVEN + (0,) * 8))
    assert not read(rows)
    rows.state.windows[rows.key][experts.RHO_EFF + "/0/0"].rewind(0)
    rows.moment.looks.clear()  # a jump back is never looked at in the moment before it
    assert not read(rows)


def test_few_tokens_are_no_dead_experts() -> None:
    """Two dozen assignments for sixteen experts leave some without any by chance: no alarm, in hundreds of steps."""
    dice, rows = random.Random(5), Rows()
    for _ in range(300):
        counts = [0] * 16
        for _ in range(24):
            counts[dice.randrange(16)] += 1
        rows.tell(ExpertLoad(1, 1, 16, tuple(counts)))
        assert not read(rows)


def test_few_tokens_are_added_up_over_five_steps() -> None:
    """A fifth of enough a step is enough in five: a true imbalance of small batches is told all the same."""
    thin = tuple(c // 20 for c in SKEWED)  # 400 assignments are 50 an expert, these are 400
    rows = Rows()
    for _ in range(12):
        rows.tell(ExpertLoad(1, 1, 8, tuple(c // 5 for c in thin)))
    assert read(rows)
    assert len(rows.state.windows[rows.key][experts.RHO_EFF].values) < 12  # before the fifth step nothing was known


def test_the_steps_before_count_only_where_they_are_needed() -> None:
    """A row that is enough by itself is not mixed with older ones: it would hide what is new."""
    old = ExpertLoad(1, 1, 8, (40,) * 8)
    assert [counts for _, _, counts, _ in experts.judged(ExpertLoad(1, 1, 8, HALF), [old])] == [HALF]
    assert [t for _, _, _, t in experts.judged(ExpertLoad(1, 1, 8, (20,) * 8), [old, None, old])] == [480]
    assert experts.judged(ExpertLoad(1, 1, 8, (20,) * 8), [ExpertLoad(1, 1, 4, (90,) * 4)]) == []


def test_only_what_is_thin_and_small_is_kept() -> None:
    """Counts are kept for the steps after only where those need them and a snapshot can bear them."""
    assert experts.thin(ExpertLoad(1, 1, 8, (3,) * 8))
    assert experts.thin(ExpertLoad(1, 1, 8, EVEN)) is None
    assert experts.thin(ExpertLoad(61, 1, 256, (3,) * 61 * 256)) is None
    assert experts.thin(None) is None


@pytest.mark.parametrize(
    ("shape", "rows", "shares"),
    [((1, 4, 16), 4, 16), ((61, 1, 256), 61, 0), ((61, 4, 8), 0, 0), ((4, 2, 16), 8, 64)],
    ids=["small", "one loop, many layers", "many rows", "several layers"],
)
def test_the_number_of_series_is_bounded(shape: tuple[int, int, int], rows: int, shares: int) -> None:
    """However large the model: the worst row and the pool always, rows and experts only while they are few."""
    layers, loops, width = shape
    found = experts.series_of(ExpertLoad(*shape, (60,) * (layers * loops * width)))
    names = [n.partition("/")[2] for n in found if n.startswith(experts.RHO_EFF + "/")]
    assert len(names) == rows + 1 and "pool" in names
    assert sum(n.startswith(experts.SHARE) for n in found) == shares
    assert set(found) > {experts.RHO_EFF, experts.DEAD_SHARE, experts.WORST_LAYER, experts.WORST_LOOP}


def test_the_pool_adds_up_loops_and_not_layers() -> None:
    """Loops share their experts: two that split them are even together. Layers do not: one bad layer is not hidden."""
    left, right = (2000,) * 4 + (0,) * 4, (0,) * 4 + (2000,) * 4
    loops = experts.series_of(ExpertLoad(1, 2, 8, left + right))
    assert (loops[experts.RHO_EFF + "/pool"], loops[experts.DEAD_SHARE + "/pool"]) == (1.0, 0.0)
    layers = experts.series_of(ExpertLoad(2, 1, 8, left + right))
    assert layers[experts.RHO_EFF + "/pool"] == pytest.approx(0.5, abs=0.01)


def test_a_wide_model_has_its_loops_pooled_too() -> None:
    """Also where single experts have no series, loops that split the experts are known to be even together."""
    left, right = (200,) * 64 + (0,) * 64, (0,) * 64 + (200,) * 64
    found = experts.series_of(ExpertLoad(1, 2, 128, left + right))
    assert found[experts.RHO_EFF] == pytest.approx(0.5, abs=0.01)
    assert found[experts.RHO_EFF + "/pool"] == 1.0


@pytest.mark.parametrize("load", [None, ExpertLoad(0, 0, 0, ()), ExpertLoad(1, 1, 4, (0,) * 4)], ids=str)
def test_no_counts_give_no_series(load: ExpertLoad | None) -> None:
    """Nothing told, or nothing routed, is not a perfect balance: there is no value."""
    assert experts.series_of(load) == {}


def test_series_that_a_trainer_tells_by_itself_are_read() -> None:
    """A source without counts may tell the two numbers: they are judged, and no layer is made up."""
    rows = Rows()
    for _ in range(3):
        rows.tell(expert_rho_eff=0.2, expert_dead_share=0.5, **{"expert_rho_eff/mean": 0.4})
    (reading,) = read(rows)
    assert "layer" not in reading.labels and "layer" not in reading.evidence
    assert "the worst layer" in reading.why


def test_it_is_breached_without_records_too() -> None:
    """The engine looks once more after each batch, without records: what is breached still is."""
    rows = Rows().loads(SKEWED, 5)
    rows.moment.records = ()
    assert read(rows)
    rows.column("loss", [1.0] * 25)
    assert not read(rows)  # but counts that have not been told for long are no word on the present
