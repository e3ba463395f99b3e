"""Where a collector is: URLs as people write them, plain http that stays on this machine, headers that are a secret."""

from pathlib import Path

import pytest

from gyrostat_agent.errors import SetupError
from gyrostat_agent.otlppush.target import Target, read_headers, target


@pytest.mark.parametrize(
    "url, expected",
    [
        ("http://127.0.0.1:4318", Target(False, "127.0.0.1", 4318, "")),
        ("http://localhost", Target(False, "localhost", 4318, "")),
        ("http://[::1]:1/", Target(False, "::1", 1, "")),
        ("http://127.8.8.8", Target(False, "127.8.8.8", 4318, "")),
        ("https://collector.example", Target(True, "collector.example", 443, "")),
        ("https://prom:9090/api/v1/otlp", Target(True, "prom", 9090, "/api/v1/otlp")),
        ("https://c/otlp/v1/traces/", Target(True, "c", 443, "/otlp")),
    ],
    ids=["usual", "no port", "ipv6", "loopback", "tls", "prefix", "whole"],
)
def test_urls_as_people_write_them(url: str, expected: Target) -> None:
    """The base that all signals stand below, or one signal's own address."""
    assert target(url) == expected


@pytest.mark.parametrize(
    "url", ["http://collector:4318", "http://10.0.0.1", "http://127.0.0.1.evil.example", "http://0.0.0.0"]
)
def test_plain_http_stays_on_this_machine(url: str) -> None:
    """Unless it is told so: the token could be read on its way. What to write is said."""
    with pytest.raises(SetupError, match=r"is not this machine.*https://, or add --otlp-insecure"):
        target(url)
    assert target(url, insecure=True).secure is False


@pytest.mark.parametrize("url", ["collector:4318", "grpc://c:4317", "http://", "http://c?x=1", "http://ä"])
def test_what_is_no_url_is_refused(url: str) -> None:
    """With the option's name and an example."""
    with pytest.raises(SetupError, match=r"--otlp.*http://127.0.0.1:4318"):
        target(url)


def test_a_secret_in_a_url_is_refused_and_not_shown() -> None:
    """Command lines are read by many."""
    with pytest.raises(SetupError, match="names no user") as found:
        target("https://me:hunter2@c")
    assert "hunter2" not in str(found.value)


def test_a_target_is_named_by_host_and_port() -> None:
    """Metrics and logs show no path: it may be a secret of its own."""
    assert target("https://c/secret").name == "c:443" and target("http://[::1]:1/secret").name == "[::1]:1"


def written(path: Path, text: bytes, mode: int = 0o600) -> str:
    path.write_bytes(text)
    path.chmod(mode)
    return str(path)


def test_headers_are_lines(tmp_path: Path) -> None:
    """Comments and empty lines are none; a value may have colons and blanks in it."""
    path = written(tmp_path / "h", b"# for vendor\n\nAuthorization: Bearer a:b c\nX-Scope-OrgID:  rl \r\n")
    assert read_headers(path) == {"Authorization": "Bearer a:b c", "X-Scope-OrgID": "rl"}


@pytest.mark.parametrize(
    "text, why",
    [
        (b"", "holds no header"),
        (b"hunter2\n", "line 1: this is no header"),
        (b"ok: 1\na b: hunter2", "line 2: this is no header"),
        (b"x: hunter2\x1b", "not of plain characters"),
        (b"x: h\xc3\xa4nter2", "not of plain characters"),
        (b"x:\n", "not of plain characters"),
        (b"Content-Type: hunter2", "Content-Type is not yours to set"),
        (b"host: hunter2", "host is not yours to set"),
        (b"".join(b"h%d: hunter2\n" % n for n in range(20)), "more than 16"),
        (b"x: " + b"hunter2" * 9000, "longer than"),
    ],
    ids=["empty", "no colon", "name", "escape", "umlaut", "no value", "type", "host", "many", "long"],
)
def test_headers_that_are_none_are_named_and_not_shown(tmp_path: Path, text: bytes, why: str) -> None:
    """By the file and the line; never what stands there."""
    with pytest.raises(SetupError, match=f"--otlp-headers-file .*{why}") as found:
        read_headers(written(tmp_path / "h", text))
    assert "hunter2" not in str(found.value)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644])
def test_headers_that_others_can_read_are_refused(tmp_path: Path, mode: int) -> None:
    """With the command that mends it."""
    path = written(tmp_path / "h", b"a: b\n", mode)
    with pytest.raises(SetupError, match=f"chmod 600 {path}"):
        read_headers(path)


def test_headers_are_a_real_file(tmp_path: Path) -> None:
    """No link is followed, and one that is not there is said."""
    (tmp_path / "link").symlink_to(written(tmp_path / "h", b"a: b\n"))
    for name in ("link", "none"):
        with pytest.raises(SetupError, match="--otlp-headers-file"):
            read_headers(str(tmp_path / name))
