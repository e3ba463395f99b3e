"""The options of ``--otlp``: passed on as given, mistakes said before anything is made, and what to install."""

import subprocess
import sys
from pathlib import Path

import pytest
from cli_runs import calling, one_line
from supervised_runs import environment

from gyrostat_agent.cli.agent import agent
from gyrostat_agent.cli.options import passed_on, settings
from gyrostat_agent.settings import Settings


def chosen(*words: str) -> Settings:
    given = agent.make_context("agent", ["/r", *words]).params
    return settings("/r", {name: value for name, value in given.items() if name not in ("run_dir", "listen")})


def test_the_agent_that_run_starts_is_given_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file by its whole path, for its working directory may be another; nothing of it unless asked for."""
    monkeypatch.chdir(tmp_path)
    Path("h").write_text("a: b")
    Path("h").chmod(0o600)
    there = chosen("--otlp", "http://c:4318", "--otlp-headers-file", "h", "--otlp-insecure")
    assert chosen(*passed_on(there, "", None)) == there
    assert there.otlp == "http://c:4318" and there.otlp_headers == str(Path("h").absolute()) and there.otlp_insecure
    assert chosen().otlp == "" and not [w for w in passed_on(chosen(), "", None) if "otlp" in w]


@pytest.mark.parametrize(
    "words, said",
    [
        (("--otlp", "http://c:4318"), "add --otlp-insecure"),
        (("--otlp", "c"), "write a URL of http or https, e.g. http://127.0.0.1:4318"),
        (("--otlp-headers-file", "x"), "are of --otlp"),
        (("--otlp-insecure",), "are of --otlp"),
        (("--otlp", "http://127.0.0.1:1", "--otlp-headers-file", "/none"), "--otlp-headers-file /none"),
    ],
    ids=["plain", "no url", "headers alone", "insecure alone", "no file"],
)
def test_options_that_cannot_be_meant(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    words: tuple[str, ...],
    said: str,
) -> None:
    """One line, status 2, before anything is made."""
    status, _, err = calling(monkeypatch, capsys)("agent", str(tmp_path / "run"), "--listen", "", *words)
    assert status == 2 and not (tmp_path / "run").exists()
    one_line(err, said)


@pytest.mark.parametrize("command", [("agent", "RUN"), ("run", "--run-dir", "RUN", "--", "true")], ids=["agent", "run"])
def test_without_the_extra_it_says_what_to_install(tmp_path: Path, command: tuple[str, ...]) -> None:
    """Before a run directory is made or a trainer started; status 2, and no stack trace."""
    run = tmp_path / "run"
    words = [str(run) if word == "RUN" else word for word in command]
    script = (
        "import sys, importlib.abc\n"
        "class Gone(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] == 'opentelemetry': raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Gone())\n"
        "from gyrostat_agent.console import main\n"
        f"sys.argv = ['gyrostat', {words[0]!r}, '--otlp', 'http://127.0.0.1:1', *{words[1:]!r}]\n"
        "sys.exit(main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, env=environment(), check=False
    )
    assert done.returncode == 2 and not run.exists()
    one_line(done.stderr, "pip install 'gyrostat[otlp]'  (missing: opentelemetry.sdk._logs)")
