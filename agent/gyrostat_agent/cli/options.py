"""Options that several commands share, and what they stand for."""

import hashlib
import os
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

import click

from gyrostat.wire.layout import RUN_DIR, RUN_NAME
from gyrostat_agent.errors import SetupError
from gyrostat_agent.settings import Settings
from gyrostat_rules.packfile import PackError, parse

_F = TypeVar("_F", bound=Callable[..., Any])

run_dir = click.argument("run_dir", type=click.Path(), envvar=RUN_DIR, metavar="RUN_DIR")
as_json = click.option("--json", "as_json", is_flag=True, help="For machines: one JSON document.")


def deciding(command: _F) -> _F:
    """The options that say what may be done: --mode, --no-approvals, --rules, --run."""
    for option in (
        click.option("--run", "run_name", envvar=RUN_NAME, default="", help="The run's name; else its directory's."),
        click.option("--rules", type=click.Path(), help="A rule pack instead of the one that comes with it."),
        click.option("--no-approvals", is_flag=True, help="What cannot be undone waits for no `gyrostat approve`."),
        click.option(
            "--mode", type=click.Choice(["observe", "shadow", "act"]), default="shadow", show_default=True,
            help="observe: read. shadow: decide and write down what would be done. act: do it.",
        ),
        click.option(
            "--listen", default="127.0.0.1:9466", show_default=True,
            help="Where /metrics, /healthz and /readyz are; '' for nowhere.",
        ),
    ):  # fmt: skip
        command = option(command)
    return command


def settings(run_path: str, run_name: str, rules: str | None, mode: str, no_approvals: bool) -> Settings:
    """The agent's settings from options; raises SetupError with every mistake of the pack."""
    text = read_pack(rules)
    name = run_name or os.path.basename(os.path.abspath(run_path))
    return Settings(name, text, digest_of(text), mode, not no_approvals)


def read_pack(path: str | None) -> str:
    """Text of a pack, checked; the one that comes with Gyrostat where no path is given."""
    try:
        text = Path(path).read_text(encoding="utf-8") if path else builtin()
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    try:
        parse(text, path or "core.yaml")
    except PackError as error:
        raise SetupError(str(error)) from None
    return text


def builtin() -> str:
    """The pack that comes with Gyrostat."""
    return (resources.files("gyrostat_rules") / "packs" / "core.yaml").read_text(encoding="utf-8")


def digest_of(text: str) -> str:
    """Name of a pack's text in the journal."""
    return f"blake2b:{hashlib.blake2b(text.encode(), digest_size=16).hexdigest()}"
