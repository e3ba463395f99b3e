"""``--pin-bytes``: read once, with its unit, and handed on to the agent that ``gyrostat run`` starts."""

import click
import pytest
from click.testing import CliRunner

from gyrostat_agent.cli.options import deciding, passed_on, settings
from gyrostat_agent.errors import SetupError
from gyrostat_agent.settings import Settings


def chosen(*words: str) -> Settings:
    """The settings that those options stand for."""
    found: list[Settings] = []

    @click.command()
    @deciding
    def agent(**given: object) -> None:
        found.append(settings("/var/tmp/run", given))

    CliRunner().invoke(agent, [*words], catch_exceptions=False, standalone_mode=False)
    return found[0]


def test_it_is_read_with_its_unit_and_handed_on() -> None:
    """500 GiB stay 500 GiB in the process that copies; by default nothing is ever copied."""
    given = chosen("--pin-bytes", "500GiB")
    assert (given.pin_bytes, chosen().pin_bytes) == (500 << 30, 0)
    assert chosen(*passed_on(given, "", None)).pin_bytes == 500 << 30


def test_what_is_no_size_is_one_sentence() -> None:
    """It names the option that was meant."""
    with pytest.raises(SetupError, match="--pin-bytes lots: write bytes"):
        chosen("--pin-bytes", "lots")
