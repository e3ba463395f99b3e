"""docs/reference_trainer.md: its tables, commands and reading order are the code's."""

import inspect
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from torch import Generator

import gyrostat_reference
from gyrostat import StepGuard, Telemetry
from gyrostat_reference.advantage import NO_SPREAD
from gyrostat_reference.arguments import read_arguments
from gyrostat_reference.credit import credited
from gyrostat_reference.data import PromptData
from gyrostat_reference.engine import InProcess
from gyrostat_reference.estimates import Estimates
from gyrostat_reference.experience import gathered
from gyrostat_reference.faults import FAULTS
from gyrostat_reference.knobs import LIMITS, KnobValues, Limits
from gyrostat_reference.measures import UNITS, Step, averaged, measure
from gyrostat_reference.model import Shape
from gyrostat_reference.pivotrl import Pivot, Pool
from gyrostat_reference.policy import Policy
from gyrostat_reference.pool import RolloutPool
from gyrostat_reference.procedures import Procedures
from gyrostat_reference.ranks import Alone
from gyrostat_reference.settings import MODES, RECIPE, Settings
from gyrostat_reference.trainer import Trainer
from gyrostat_reference.update import Update

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGE = (DOCS / "reference_trainer.md").read_text(encoding="utf-8")
PACKAGE = Path(gyrostat_reference.__file__).parent
COMMANDS = [line.strip() for line in PAGE.splitlines() if line.startswith("    ") and "-m gyrostat_reference" in line]
WRITTEN = ["reference_trainer.md", *(f"adr/{path.name}" for path in sorted((DOCS / "adr").glob("*.md")))]
ITEM = 5


def rows(heading: str) -> Iterator[list[str]]:
    """The rows of the table below the line that begins with ``heading``, cell by cell."""
    lines = iter(PAGE.splitlines())
    assert any(line.startswith(heading) for line in lines), f"the page has no table {heading!r}"
    next(lines)
    for line in lines:
        if not line.startswith("|"):
            return
        yield [cell.strip() for cell in line.strip("|").split("|")]


def named(cell: str) -> list[str]:
    """The words in backticks."""
    return re.findall(r"`([^`]+)`", cell)


def change(limits: Limits) -> str:
    """The largest change of one directive, as the page spells it."""
    if limits.max_factor is not None:
        return f"x{limits.max_factor:g}"
    return "any" if limits.max_step is None else f"{limits.max_step:g}"


def test_the_knobs_are_those_of_the_code() -> None:
    """Default, bounds, largest change, whether it is live, and what it does: a person plans with these."""
    defaults = KnobValues()._asdict()
    wanted = [
        [f"`{name}`", f"{defaults[name]:g}", f"{limits.low:g} to {limits.high:g}", change(limits),
         "yes" if limits.live else "restart", limits.doc]
        for name, limits in LIMITS.items()
    ]  # fmt: skip
    assert list(rows("| knob |")) == wanted


def test_the_faults_are_those_of_the_code() -> None:
    """Name, what it does, the step before which it strikes."""
    wanted = [[f"`{name}`", fault.doc, str(fault.step)] for name, fault in FAULTS.items()]
    assert list(rows("| name | what it does | default step")) == wanted


@pytest.mark.parametrize("page", ["README.md", "CHANGELOG.md"])
def test_knobs_and_faults_are_as_many_as_is_said(page: str) -> None:
    """A number that was true once is not true."""
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    assert f"{len(LIMITS)} knobs" in text and f"{len(FAULTS)} faults" in text


def test_the_procedures_are_those_that_are_offered(tmp_path: Path) -> None:
    """Each is there, and each argument in backticks is one that its docstring knows."""
    trainer = Trainer(Settings(checkpoints=tmp_path), Telemetry(""), say=lambda line: None)
    table = {named(name)[0]: named(arguments) for name, arguments, _ in rows("| name | arguments |")}
    offered = Procedures(trainer).offered()
    assert set(table) == set(offered)
    strangers = {
        argument: name for name, arguments in table.items() for argument in arguments
        if f"``{argument}``" not in (inspect.getdoc(offered[name]) or "")
    }  # fmt: skip
    assert not strangers


def test_the_metrics_are_those_that_are_recorded() -> None:
    """No metric that a run tells is missing from the page, none stands there that nothing tells."""
    listed = [name for cells in rows("| metric |") for name in named(cells[0])]
    told = {re.sub(r"^(loop_update)_\d+$", r"\1_N", name) for name in recorded()}
    assert len(listed) == len(set(listed))
    assert set(listed) == told


def test_the_units_are_those_that_are_told() -> None:
    """A unit that telemetry says is the page's too."""
    units = {name: cells[3] for cells in rows("| metric |") for name in named(cells[0])}
    assert {name: units[name] for name in UNITS} == UNITS


@pytest.mark.parametrize("command", COMMANDS)
def test_the_commands_are_understood(command: str) -> None:
    """Whoever copies a line of the page gets no usage message; nothing is run here."""
    words = shlex.split(command, comments=True)
    place = words.index("gyrostat_reference")
    variables = dict(word.split("=", 1) for word in words[:place] if re.match(r"[A-Z_]+=", word))
    assert words[place - 1] == "-m"
    assert read_arguments(words[place + 1 :], variables).settings.steps


def test_the_modes_and_the_schedule_are_those_of_the_code() -> None:
    """The recipe of the page is the recipe."""
    modes = re.search(r"^Modes: (.*?)\n\n", PAGE, re.MULTILINE | re.DOTALL)
    assert modes and set(MODES) <= set(named(modes[1]))
    recipe = " ".join(PAGE.partition("## The recipe")[2].split())
    rate, warm_up, decay_from, horizon = RECIPE
    told = re.search(
        r"(\d+) steps of .* rate (\S+) \(up over (\d+) steps, level to (\d+), down to a tenth at (\d+)\)", recipe
    )
    assert told and [float(each) for each in told.groups()] == [horizon, rate, warm_up, decay_from, horizon]


def test_the_reading_order_names_every_module() -> None:
    """Who reads from top to bottom has read all of it."""
    order = PAGE.partition("## Where to read what")[2].partition("\n## ")[0]
    modules = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__"} | {"pool"}
    assert modules <= set(named(order))


@pytest.mark.parametrize("page", WRITTEN)
def test_what_the_pages_link_to_is_there(page: str) -> None:
    """No dead link inside the repository."""
    path = DOCS / page
    links = [t for t in re.findall(r"\]\(([^)#]+)\)", path.read_text(encoding="utf-8")) if "://" not in t]
    assert not [t for t in links if not (path.parent / t).exists()]


def recorded() -> set[str]:
    """Every name that a record may hold, without training: one forward each of a good step and a poisoned one."""
    engine = InProcess(poison_item=PromptData().item_at(ITEM))
    good = measured(InProcess())
    values = good | measured(engine) | averaged({}, good) | StepGuard().values() | engine.measures()
    pool = RolloutPool(1)
    try:
        values |= pool.measures()
    finally:
        pool.close()
    own = re.findall(r'values\["(\w+)"\]', inspect.getsource(Trainer))
    of_a_roll_out = re.findall(r'"(\w+)": _quantile', inspect.getsource(RolloutPool))
    return {*values, *own, *of_a_roll_out}


def measured(engine: InProcess) -> dict[str, float]:
    """What is measured of one step, pivots included, that nothing is learnt from."""
    policy, random = Policy(Shape(), None, "", "ddp", Alone()), Generator().manual_seed(0)
    batch = PromptData().draw()
    engine.load(policy.model, 1)
    pivots = [Pivot((*batch.prompts[0].tolist(), 0), batch.items[0])]
    seen = gathered(policy, engine, batch, pivots, 1.0, random)
    before = Estimates(pool=Pool(tuple(pivots), profiled=1, spread=NO_SPREAD, share=0.1))
    credit, after = credited(seen.rollouts, seen.rewards, before, KnobValues(), Alone())
    step = Step(batch, seen.rollouts, credit, Update(True, 0.0, 0.0, 0.0))
    return measure(step, after, KnobValues())
