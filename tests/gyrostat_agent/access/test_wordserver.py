"""Words over HTTP, to a real agent: what is heard, what is answered, and everything that is turned away."""

import json
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from agent_runs import Bench
from http_posts import raw
from supervised_runs import until
from word_runs import Speaking, held_action, listening, passing, speaking

from gyrostat_agent.access import notice, tokenfile
from gyrostat_agent.access.wordserver import LIMITS, STATUS, WordServer
from gyrostat_agent.errors import SetupError
from gyrostat_rules.inputs import Verb

PAUSE = "/v1/words/pause"


@pytest.fixture
def spoken(bench: Bench) -> Iterator[Speaking]:
    """An agent that listens."""
    with speaking(bench) as made:
        yield made


@pytest.fixture
def server(bench: Bench) -> Iterator[Speaking]:
    """A server that no agent stands behind: whatever passes it lies there."""
    with listening(bench) as made:
        yield made


def test_a_word_is_heard_and_answered(spoken: Speaking) -> None:
    """With the agent's own sentence out of its journal, and who said it."""
    said = spoken.ask(PAUSE, b'{"by": "Ada\\n\\u001b[31m"}')
    assert said.status == 200 and json.loads(said.body) == {"said": "paused: nothing is done until resumed"}
    (word,) = spoken.words()
    assert word.subject == Verb.PAUSE and word.data["arguments"] == {"by": "http 127.0.0.1 (Ada ?[31m)"}
    assert spoken.ask("/v1/words/resume").status == 200 and not spoken.lying()


def test_an_approval_is_of_one_action_and_once(spoken: Speaking) -> None:
    """As on the command line: the second is refused with the agent's sentence."""
    action = held_action(spoken)
    body = json.dumps({"action": action}).encode()
    said = spoken.ask("/v1/words/approve", body)
    assert said.status == 200 and json.loads(said.body) == {"said": f"http 127.0.0.1 approved {action}"}
    again = spoken.ask("/v1/words/approve", body)
    assert again.status == 409 and f"no action '{action}' waits for a word" in again.error


def test_two_at_once_get_an_answer_each(spoken: Speaking) -> None:
    """The same word, of the same person, twice in a moment."""
    got: list[int] = []
    threads = [threading.Thread(target=lambda: got.append(spoken.ask(PAUSE).status)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == [200] * 8 and len(spoken.words()) == 8


def test_how_the_run_fares(server: Speaking) -> None:
    """The status file as it is; before there is one, that is said."""
    assert server.ask(STATUS, b"", "GET").status == 503
    shown = Path(server.bench.run.agent, "status.json")
    shown.write_text('{"run": "run"}')
    shown.chmod(0o600)
    said = server.ask(STATUS, b"", "GET")
    assert said.status == 200 and json.loads(said.body) == {"run": "run"}
    assert server.ask(STATUS, b"", "GET", token="").status == 401


def test_an_agent_that_does_not_answer(bench: Bench) -> None:
    """The word lies there, and that is what is said: the next agent hears it."""
    with listening(bench, LIMITS._replace(patience=0.05)) as server:
        said = server.ask(PAUSE)
        assert said.status == 202 and "has not answered yet" in json.loads(said.body)["said"]
        assert len(server.lying()) == 1
        with passing(server):
            until(lambda: server.words())
    assert [e.subject for e in server.words()] == [Verb.PAUSE] and not server.lying()


def test_an_inbox_that_nobody_empties_is_bounded(bench: Bench) -> None:
    """A loop that is stuck must not fill the disk with words."""
    with listening(bench, LIMITS._replace(patience=0.01, inbox=3)) as server:
        assert [server.ask(PAUSE).status for _ in range(5)] == [202, 202, 202, 503, 503]
        assert len(server.lying()) == 3


def test_words_have_a_pace(bench: Bench) -> None:
    """People say few of them."""
    with listening(bench, LIMITS._replace(patience=0.01, per_second=0.001, burst=2)) as server:
        assert [server.ask(PAUSE).status for _ in range(3)] == [202, 202, 429] and len(server.lying()) == 2


# -- whoever guesses, and whoever is slow -----------------------------------------------------------------


def test_a_thousand_wrong_tokens(spoken: Speaking) -> None:
    """Few are looked at; no word, no turn, no crowd of threads comes of them; one line with the address is said."""
    until(lambda: spoken.passes > 3)
    before, most, done = len(spoken.entries()), 0, 0
    for n in range(1000):
        status = spoken.ask(PAUSE, token=f"{n:064x}").status
        done += status == 401
        assert status in (401, 429)
        most = max(most, sum(t.name.startswith("Thread") for t in threading.enumerate()))
    passes = spoken.passes
    until(lambda: spoken.passes > passes + 3)
    counts = spoken.server.counts()
    assert 5 <= done <= 20 and counts["unauthorized"] == done and counts["too many"] == 1000 - done
    assert most <= LIMITS.connections + 1 and len(spoken.entries()) == before
    assert len(spoken.said) == 1 and "127.0.0.1" in spoken.said[0]


def test_who_shows_none_is_not_slowed_down(server: Speaking) -> None:
    """Any page can make a browser ask without one: that must not lock its user out."""
    for _ in range(60):
        assert server.ask(PAUSE, token="").status == 401
    assert server.ask(STATUS, b"", "GET").status == 503 and not server.said


def test_slow_clients_hold_nobody_up(bench: Bench) -> None:
    """More than may be connected, none of which ends its request: a word passes, and they are let go of."""
    with speaking(bench, LIMITS._replace(connections=4, longest=0.3, seconds=60.0)) as spoken:
        host, port = spoken.server.address.split(":")
        slow = [socket.create_connection((host, int(port)), timeout=20) for _ in range(8)]
        for each in slow:
            each.sendall(b"POST /v1/words/pause HTTP/1.1\r\nHost: 127")
        assert spoken.ask(PAUSE).status == 200
        assert [each.recv(1) for each in slow] == [b""] * 8  # the server has closed each
        for each in slow:
            each.close()


def test_a_body_that_never_comes(bench: Bench) -> None:
    """408, in the time that there is."""
    with listening(bench, LIMITS._replace(seconds=0.2)) as server:
        head = f"POST {PAUSE} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {server.token}\r\n"
        head += "Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{"
        assert b" 408 " in raw(server.server.address, head.encode())[:20] and not server.lying()


# -- the token --------------------------------------------------------------------------------------------


def test_a_new_token_holds_at_once(spoken: Speaking) -> None:
    """Without a restart; the one before is void with the same moment."""
    old = spoken.token
    assert spoken.ask(PAUSE).status == 200
    tokenfile.rotate(spoken.server.token_file)
    assert spoken.ask(PAUSE, token=old).status == 401 and spoken.ask(PAUSE).status == 200


def test_a_token_file_that_others_may_read_shuts_the_door(server: Speaking) -> None:
    """While the agent runs too: nobody is let in, whoever asks is told no more than that, the operator how to mend."""
    os.chmod(server.server.token_file, 0o644)
    said = [server.ask(PAUSE) for _ in range(3)]
    assert [s.status for s in said] == [503] * 3 and "chmod" not in said[0].error
    assert len(server.said) == 1 and f"chmod 600 {server.server.token_file}" in server.said[0]
    os.chmod(server.server.token_file, 0o600)
    assert server.ask(STATUS, b"", "GET").status == 503 and server.ask(PAUSE, token="x").status == 401


@pytest.mark.parametrize("mode", [0o644, 0o660])
def test_it_does_not_start_with_such_a_file(bench: Bench, tmp_path: Path, mode: int) -> None:
    """Nor where the file is missing; the agent's own one that was opened to others neither."""
    given = tmp_path / "token"
    given.write_text("x" * 64)
    given.chmod(mode)
    own = Path(tokenfile.place(bench.run))
    own.write_text("x" * 64)
    own.chmod(mode)
    for path in (given, own):
        with pytest.raises(SetupError, match=f"chmod 600 {path}"):
            WordServer("127.0.0.1:0", bench.run, print, token_file="" if path == own else str(path))
    with pytest.raises(SetupError, match="make one"):
        WordServer("127.0.0.1:0", bench.run, print, token_file=str(tmp_path / "none"))


def test_the_next_server_has_the_same_token(bench: Bench) -> None:
    """A restart of the agent is no reason to hand tokens out again; where it listens is found beside."""
    with listening(bench) as server:
        token = server.token
        assert notice.find(bench.run) == (server.server.address, server.server.token_file)
    assert notice.find(bench.run).address == ""
    with listening(bench) as server:
        assert server.token == token


def test_the_token_is_in_no_answer_and_no_line(server: Speaking) -> None:
    """Whatever is asked, and whatever goes wrong."""
    for path, body in ((PAUSE, b"{"), (STATUS, b""), (f"/{server.token}", b"{}"), ("/v1/words/approve", b'{"a": ""}')):
        for method in ("GET", "POST", "PUT"):
            said = server.ask(path, body, method)
            assert server.token.encode() not in said.body and server.token not in str(said.headers)
    assert not any(server.token in line for line in server.said)


def test_other_machines_may_ask_only_where_that_is_said(bench: Bench) -> None:
    """Loopback unless told; the operator is told what that means."""
    said: list[str] = []
    server = WordServer("0.0.0.0:0", bench.run, said.append)
    server.close()
    assert len(said) == 1 and "in clear" in said[0]


@pytest.mark.parametrize("listen", ["here", "127.0.0.1:", ":1", "127.0.0.1:99999", "192.0.2.1:0"])
def test_an_address_that_is_none(bench: Bench, listen: str) -> None:
    """Names the option."""
    with pytest.raises(SetupError, match="--control"):
        WordServer(listen, bench.run, print)
