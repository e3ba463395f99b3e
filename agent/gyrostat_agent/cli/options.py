"""Options that several commands share, and what they stand for."""

import hashlib
import os
import re
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from gyrostat.wire.fields import clean
from gyrostat.wire.layout import RUN_DIR, RUN_NAME
from gyrostat_agent.address import split
from gyrostat_agent.cli.clustering import CLUSTERED, clustered_on, clustering
from gyrostat_agent.cli.exporting import EXPORTED, exported_on, exporting
from gyrostat_agent.cli.pushing import PUSHED, pushed_on, pushing
from gyrostat_agent.cli.remote import meant
from gyrostat_agent.errors import SetupError
from gyrostat_agent.settings import Settings
from gyrostat_rules.packfile import PackError, parse
from gyrostat_rules.packmerge import join
from gyrostat_rules.packs import NAMES

BUILTIN = "builtin"  # stands for the packs that come with Gyrostat where a file is named
_F = TypeVar("_F", bound=Callable[..., Any])


def _found(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    return None if ctx.resilient_parsing else meant(ctx, value, ctx.get_parameter_source(str(param.name)))


def _heard_at(ctx: click.Context, param: click.Parameter, value: str) -> str:
    try:
        split(value, "", "") if value else None
    except SetupError:
        raise SetupError(
            f"--control {clean(value)}: write HOST:PORT, e.g. --control=127.0.0.1:9467; where none is given, "
            "another option or -- must follow"
        ) from None
    return value


def _name(ctx: click.Context, param: click.Parameter, value: str) -> str:
    """Names a folder where none is given: it must not lead out of the one it is made in, nor command a terminal."""
    if "/" in value or value in (".", "..") or clean(value) != value:
        raise SetupError(f"--run {clean(value)}: give a plain name, without / or control characters, e.g. my-run")
    return value


def _address(ctx: click.Context, param: click.Parameter, value: str) -> str:
    host, _, port = value.rpartition(":")
    well = host and port.isascii() and port.isdigit() and len(port) <= 5 and int(port) <= 65535
    if value and not well:
        raise SetupError(f"--listen {clean(value)}: write HOST:PORT, e.g. 127.0.0.1:9466, or '' for nowhere")
    return value


_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def _size(ctx: click.Context, param: click.Parameter, value: str) -> int:
    found = re.fullmatch(r"(\d{1,15})([KMGT]?)(?:i?B)?", value, re.ASCII | re.IGNORECASE)
    if found is None:
        name = str(param.name).replace("_", "-")
        raise SetupError(f"--{name} {clean(value)}: write bytes, or e.g. 512MiB or 2GiB")
    return int(found[1]) * _UNITS[found[2].upper()]


def _known(ctx: click.Context, param: click.Parameter, value: str) -> str:
    from gyrostat_agent.sources.logs.table import FORMATS

    if value and value not in FORMATS:
        raise SetupError(f"--log-format {clean(value)}: there are {', '.join(FORMATS)}")
    return value


run_dir = click.argument("run_dir", type=click.Path(), envvar=RUN_DIR, metavar="RUN_DIR")
watched_run_dir = click.argument(
    "run_dir", required=False, type=click.Path(), envvar=RUN_DIR, metavar="[RUN_DIR]", callback=_found
)
as_json = click.option("--json", "as_json", is_flag=True, help="For machines: one JSON document.")


# Whose words are taken over the network; the last is shown first.
_WORDS = (
    click.option(
        "--control-name", "control_names", multiple=True, metavar="NAME",
        help="A name that this machine may be asked for by; repeat for more. Its addresses always may.",
    ),
    click.option(
        "--control-token", type=click.Path(), default="", metavar="FILE",
        help="File with the token that they must show, mode 0600; else one of the agent's own.",
    ),
    click.option(
        "--control", is_flag=False, flag_value="127.0.0.1:9467", default="", callback=_heard_at,
        metavar="[HOST:PORT]",
        help="Take people's words over HTTP too, from whoever shows the token; 127.0.0.1:9467 where none is given.",
    ),
)  # fmt: skip
# What is read besides records; the last is shown first.
_READ = (
    click.option("--receive-token", "token_file", type=click.Path(), default="", help="File with their token."),
    click.option(
        "--receive", default="", callback=_address, metavar="HOST:PORT",
        help="Take OTLP metrics and Kubeflow's callback there, e.g. 127.0.0.1:4318.",
    ),
    click.option(
        "--scrape", "scrapes", multiple=True, metavar="URL",
        help="A /metrics page to read: vLLM, SGLang, DCGM exporter; repeat for more.",
    ),
    click.option(
        "--checkpoints", multiple=True, type=click.Path(), metavar="DIR",
        help="Where checkpoints are saved: to be gone back to by a restart (the first), and for --host to time; "
        "repeat for more. A trainer that tells its own needs none.",
    ),
    click.option("--host", is_flag=True, help="Look at this machine: memory, disks, network, saves, kernel log."),
    click.option("--gpu", is_flag=True, help="Look at this machine's GPUs (NVML), once a second."),
    click.option("--log-format", default="", metavar="NAME", callback=_known, help="What writes those logs."),
    click.option(
        "--log", "logs", multiple=True, type=click.Path(), metavar="PATH",
        help="A log of the trainer's to read, or its TensorBoard folder or event file, which no --log-format "
        "concerns; of whatever trainer; repeat for more. See `gyrostat series PATH`.",
    ),
)  # fmt: skip
# What is kept, and for how long; the last is shown first.
_KEPT = (
    click.option(
        "--pins", type=click.IntRange(0, 100), default=2, show_default=True, metavar="N",
        help="Certified checkpoints kept from the trainer's rotation, beside them in gyrostat-pins/; 0 for none.",
    ),
    click.option(
        "--pin-bytes", default="0", show_default=True, metavar="SIZE", callback=_size,
        help="So much may be copies, e.g. 500GiB, where no clone or link can be made; best with room for two.",
    ),
    click.option(
        "--journal-bytes", default="512MiB", show_default=True, metavar="SIZE", callback=_size,
        help="Let the oldest of what it was told go beyond this size of the journal; 0 for no limit.",
    ),
    click.option(
        "--journal-days", type=click.FloatRange(0, 36500), default=14.0, show_default=True, metavar="DAYS",
        help="Let what it was told go after so long, but not around incidents; decisions are kept. 0 for no limit.",
    ),
)  # fmt: skip
# What may be done, and by which rules; the last is shown first.
_DECIDED = (
    click.option(
        "--run", "run_name", envvar=RUN_NAME, default="", callback=_name,
        help="The run's name; else its directory's.",
    ),
    click.option("--rules", type=click.Path(), help="A rule pack instead of the one that comes with it."),
    click.option("--no-approvals", is_flag=True, help="What cannot be undone waits for no `gyrostat approve`."),
    click.option(
        "--mode", type=click.Choice(["observe", "shadow", "act"]), default="shadow", show_default=True,
        help="observe: read. shadow: decide and write down what would be done. act: do it.",
    ),
    click.option(
        "--listen", default="127.0.0.1:9466", show_default=True, callback=_address,
        help="Where /metrics, /healthz and /readyz are; '' for nowhere. Where that port is taken, a free one is served "
        "and said; one that you give is refused.",
    ),
)  # fmt: skip


def deciding(command: _F) -> _F:
    """The options that say what may be done, what is read besides records, and who is told."""
    for option in (*CLUSTERED, *_WORDS, *EXPORTED, *PUSHED, *_READ, *_KEPT, *_DECIDED):
        command = option(command)
    return command


def settings(run_path: str, given: dict[str, Any]) -> Settings:
    """The agent's settings from the options of ``deciding``; raises SetupError with every mistake of the pack."""
    text = read_pack(given["rules"])
    name = given["run_name"] or clean(os.path.basename(os.path.abspath(run_path)))  # as the trainer will spell it
    paths = tuple(os.path.abspath(path) for path in given["logs"])
    token = os.path.abspath(given["token_file"]) if given["token_file"] else ""
    if (given["control_token"] or given["control_names"]) and not given["control"]:
        raise SetupError("--control-token and --control-name are of --control; give that too")
    roots = tuple(os.path.abspath(path) for path in given["checkpoints"])
    chosen = Settings(
        name, text, digest_of(text), given["mode"], not given["no_approvals"], logs=paths,
        log_format=given["log_format"], gpu=given["gpu"], host=given["host"], scrapes=given["scrapes"],
        receive=given["receive"], token_file=token, checkpoints=roots, pins=given["pins"], pin_bytes=given["pin_bytes"],
        journal_days=given["journal_days"], journal_bytes=given["journal_bytes"],
        control=given["control"], control_names=given["control_names"],
        control_token=os.path.abspath(given["control_token"]) if given["control_token"] else "",
    )  # fmt: skip
    return clustering(exporting(pushing(chosen, given), given), given)


def is_named(ctx: click.Context, name: str) -> bool:
    """True where somebody gave that option."""
    return ctx.get_parameter_source(name) is not ParameterSource.DEFAULT


def passed_on(chosen: Settings, listen: str | None, rules: str | None) -> list[str]:
    """The same options again, for a process that is given them; ``listen`` None: nobody named a port."""
    words = ["--mode", chosen.mode, "--run", chosen.run, "--pins", str(chosen.pins)]
    words += [] if listen is None else ["--listen", listen]
    words += ["--pin-bytes", str(chosen.pin_bytes)] if chosen.pin_bytes else []
    words += ["--journal-days", str(chosen.journal_days), "--journal-bytes", str(chosen.journal_bytes)]
    words += ["--no-approvals"] if not chosen.approvals else []
    words += ["--rules", os.path.abspath(rules)] if rules else []
    words += [word for log in chosen.logs for word in ("--log", log)]
    words += [word for url in chosen.scrapes for word in ("--scrape", url)]
    words += ["--gpu"] if chosen.gpu else []
    words += ["--host"] if chosen.host else []
    words += [word for root in chosen.checkpoints for word in ("--checkpoints", root)]
    words += [word for name in chosen.control_names for word in ("--control-name", name)]
    words += [*pushed_on(chosen), *exported_on(chosen), *clustered_on(chosen)]
    named = {
        "--log-format": chosen.log_format, "--receive": chosen.receive, "--receive-token": chosen.token_file,
        "--control": chosen.control, "--control-token": chosen.control_token,
    }  # fmt: skip
    return words + [word for name, value in named.items() if value for word in (name, value)]


def read_pack(path: str | None) -> str:
    """Text of a pack, checked; the one that comes with Gyrostat where no path is given."""
    try:
        text = Path(path).read_text(encoding="utf-8") if path else builtin()
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    try:
        parse(text, path or BUILTIN)
    except PackError as error:
        raise SetupError(str(error)) from None
    return text


def builtin() -> str:
    """The packs that come with Gyrostat, as one text."""
    packs = resources.files("gyrostat_rules") / "packs"
    return join([(packs / f"{name}.yaml").read_text(encoding="utf-8") for name in NAMES])


def digest_of(text: str) -> str:
    """Name of a pack's text in the journal."""
    return f"blake2b:{hashlib.blake2b(text.encode(), digest_size=16).hexdigest()}"
