"""Where an Alertmanager is: URLs as people write them, no secret in any, and a token that only its user can read."""

import os
from pathlib import Path

import pytest

from gyrostat_agent.alertpush.target import Target, checked, read_token, target
from gyrostat_agent.errors import SetupError


@pytest.mark.parametrize(
    "url, expected",
    [
        ("http://am:9093", Target(False, "am", 9093, "/api/v2/alerts")),
        ("http://am", Target(False, "am", 9093, "/api/v2/alerts")),
        ("https://am/", Target(True, "am", 443, "/api/v2/alerts")),
        ("http://am:1/prefix/", Target(False, "am", 1, "/prefix/api/v2/alerts")),
        ("http://am:1/api/v2/alerts", Target(False, "am", 1, "/api/v2/alerts")),
        ("http://[::1]:9093", Target(False, "::1", 9093, "/api/v2/alerts")),
    ],
    ids=["usual", "no port", "tls", "prefix", "whole", "ipv6"],
)
def test_urls_as_people_write_them(url: str, expected: Target) -> None:
    """The page that they open themselves, or the API's own address."""
    assert target(url) == expected


def test_a_target_is_named_by_host_and_port() -> None:
    """Metrics and logs show no path: it may be a secret of its own."""
    assert target("http://[::1]:1/secret").name == "[::1]:1" and target("http://am/secret").name == "am:9093"


@pytest.mark.parametrize(
    "url",
    [
        "am:9093",
        "ftp://am",
        "http://",
        "http://am:x",
        "http://am:99999",
        "http://a b",
        "file:///etc",
        "http://ä",
        "http://[",
    ],
)
def test_what_is_no_url_says_how_to_write_one(url: str) -> None:
    """With the option's name and an example."""
    with pytest.raises(SetupError, match=r"--alertmanager .*write a URL of http or https, e.g. http://127.0.0.1:9093"):
        target(url)


@pytest.mark.parametrize("url", ["http://me:hunter2@am:9093", "https://tok-hunter2@am", "hunter2@am"])
def test_a_secret_in_a_url_is_refused_and_not_shown(url: str) -> None:
    """The way to do it is; what stands there is not repeated into a log."""
    with pytest.raises(SetupError, match="--alertmanager-token-file FILE") as found:
        target(url)
    assert "hunter2" not in str(found.value)


@pytest.mark.parametrize("url", ["http://am?token=hunter2", "http://am/#hunter2", "http://am?"])
def test_a_query_is_refused_and_not_shown(url: str) -> None:
    """It may be a token too."""
    with pytest.raises(SetupError, match="leave out what stands behind") as found:
        checked(url, "--external-url", "http://x")
    assert "hunter2" not in str(found.value)


def test_a_token_is_read(tmp_path: Path) -> None:
    """Without the line's end."""
    path = tmp_path / "token"
    path.write_text("abc.DEF-1\n")
    path.chmod(0o600)
    assert read_token(str(path)) == "abc.DEF-1"


@pytest.mark.parametrize(
    "body, mode, said",
    [
        (b"abc", 0o640, "chmod 600"),
        (b"abc", 0o622, "others may write"),
        (b"", 0o600, "must hold a token"),
        (b"two words", 0o600, "one word"),
        (b"a\nAuthorization: b", 0o600, "one word"),
        ("ä".encode(), 0o600, "plain characters"),
        (b"x" * 20000, 0o600, "at most"),
    ],
    ids=["read by others", "written by others", "empty", "two words", "a header", "umlaut", "huge"],
)
def test_a_token_file_that_cannot_be_used(tmp_path: Path, body: bytes, mode: int, said: str) -> None:
    """Says why and what to do, and never what is in it."""
    path = tmp_path / "token"
    path.write_bytes(body)
    path.chmod(mode)
    with pytest.raises(SetupError, match=said) as found:
        read_token(str(path))
    assert "--alertmanager-token-file" in str(found.value) and "two words" not in str(found.value)


def test_a_token_file_that_is_none(tmp_path: Path) -> None:
    """Missing, a link, or a folder."""
    os.symlink("/dev/null", tmp_path / "link")
    for name in ("missing", "link", "."):
        with pytest.raises(SetupError, match="--alertmanager-token-file"):
            read_token(str(tmp_path / name))
