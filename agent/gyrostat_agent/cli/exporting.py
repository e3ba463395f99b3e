"""The options of an OTLP collector, and what they stand for; the last is shown first."""

import os
from typing import Any

import click

from gyrostat_agent.errors import SetupError
from gyrostat_agent.otlppush.target import read_headers, target
from gyrostat_agent.settings import Settings
from gyrostat_exporters.otlp.installed import NEEDED, missing

EXPORTED = (
    click.option(
        "--otlp-insecure", is_flag=True, help="Let plain http go to another machine; who is on its way can read it."
    ),
    click.option(
        "--otlp-headers-file", "otlp_headers", type=click.Path(), default="", metavar="FILE",
        help="File with headers for it, a line 'Name: value' each, mode 0600; read at each post.",
    ),
    click.option(
        "--otlp", default="", metavar="URL",
        help="Tell this OpenTelemetry collector metrics, logs and traces, e.g. http://127.0.0.1:4318.",
    ),
)  # fmt: skip


def exporting(chosen: Settings, given: dict[str, Any]) -> Settings:
    """The settings with these options in them; raises SetupError where one cannot be used, or lacks the library."""
    url, headers, insecure = given["otlp"], given["otlp_headers"], given["otlp_insecure"]
    if not url:
        if headers or insecure:
            raise SetupError("--otlp-headers-file and --otlp-insecure are of --otlp; give that too")
        return chosen
    target(url, insecure=insecure)
    if headers:
        read_headers(headers)
    if name := missing():
        raise SetupError(f"--otlp needs OpenTelemetry's libraries: {NEEDED}  (missing: {name})")
    return chosen._replace(
        otlp=url, otlp_headers=os.path.abspath(headers) if headers else "", otlp_insecure=insecure
    )  # fmt: skip


def exported_on(chosen: Settings) -> list[str]:
    """The same options again, for a process that is given them."""
    words = ["--otlp", chosen.otlp] if chosen.otlp else []
    words += ["--otlp-headers-file", chosen.otlp_headers] if chosen.otlp_headers else []
    return words + (["--otlp-insecure"] if chosen.otlp_insecure else [])
