"""WordServer: people's words over HTTP, to those who show the token. Safe to leave on; off unless asked for.

Threads of its own, so many at most, that see the token file, the status file, and the folder where the command line
lays words too: none can slow the loop or change anything past it. What is checked stands in ``_Spoken._admit`` in its
order. Not promised: TLS; behind another machine's network the token can be read on its way.
"""

import contextlib
import os
import re
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from gyrostat.wire import RightsError, RunDirectory
from gyrostat.wire.rights import read_trusted
from gyrostat_agent import bearer
from gyrostat_agent.access import notice, tokenfile
from gyrostat_agent.access.replies import Replies
from gyrostat_agent.access.words import WORDS, is_refusal, read
from gyrostat_agent.access.wrongtokens import WrongTokens
from gyrostat_agent.address import is_loopback, is_number, split
from gyrostat_agent.allowance import Allowance
from gyrostat_agent.errors import SetupError
from gyrostat_agent.exchange import JSON, Answer, Bounded, Exchange, Refusal, line
from gyrostat_agent.sources.commands import give
from gyrostat_rules.entries import Entry

DEFAULT = "127.0.0.1:9467"
STATUS, SAYING = "/v1/status", "/v1/words/"
_LOOK_SECONDS = 0.1  # how long ``close`` may wait
_STATUS_BYTES = 16 << 20
_NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_NAMES = {200: "done", 202: "unanswered", 401: "unauthorized", 403: "forbidden", 409: "refused", 429: "too many",
          503: "unable"}  # fmt: skip


class Limits(NamedTuple):
    """What the server bears.

    ``body``: bytes of a word. ``connections``: open at once, the oldest goes first. ``seconds``: until a request must
    be here; ``longest``: until its connection ends, whatever it does. ``patience``: seconds until the agent has
    answered. ``per_second`` and ``burst``: words; people say few. ``inbox``: words that may lie there unread.
    """

    body: int = 64 << 10
    connections: int = 16
    seconds: float = 10.0
    longest: float = 30.0
    patience: float = 5.0
    per_second: float = 5.0
    burst: int = 20
    inbox: int = 64


LIMITS = Limits()


class WordServer:
    """Serves until it is closed; raises SetupError where the address or the token file cannot be used.

    ``names`` may stand in Host beside a literal address. ``say`` gets one line for the operator.
    """

    def __init__(
        self, listen: str, run: RunDirectory, say: Callable[[str], None], *, token_file: str = "",
        names: Collection[str] = (), limits: Limits = LIMITS,
    ) -> None:  # fmt: skip
        host, port = split(listen, "--control", DEFAULT)
        _check_names(names)
        self.token_file = token_file or tokenfile.place(run)
        if not token_file:
            tokenfile.make(self.token_file)
        tokenfile.read(self.token_file)
        try:
            self._server = _Server((host, port), run, self.token_file, frozenset(n.lower() for n in names), say, limits)
        except (OSError, UnicodeError) as error:
            why = getattr(error, "strerror", None) or error
            raise SetupError(f"--control {listen}: {why}; give another address, e.g. 127.0.0.1:0") from None
        self.address = self._server.address
        self._run = run
        if not is_loopback(host):
            say(f"words are taken from other machines at {self.address}, in clear: let a proxy put TLS before it")
        notice.put(run, notice.Notice(self.address, self.token_file))
        threading.Thread(target=self._server.serve_forever, args=(_LOOK_SECONDS,), name="words", daemon=True).start()

    def heard(self, entries: Iterable[Entry]) -> None:
        """What the agent has written: answers are among it. Never waits."""
        self._server.replies.heard(entries)

    def counts(self) -> Counter[str]:
        """Requests so far, by what they got."""
        with self._server.lock:
            return Counter(self._server.answered)

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        notice.put(self._run, notice.Notice("", self.token_file))


def _check_names(names: Iterable[str]) -> None:
    """One that can never be asked for would only look as if it were let in."""
    for name in names:
        if not _NAME.fullmatch(name):
            raise SetupError(f"--control-name {name}: write the name alone, without a port or *, e.g. gyro.lan")


class _Server(Bounded):
    def __init__(
        self, address: tuple[str, int], run: RunDirectory, token_file: str, names: frozenset[str],
        say: Callable[[str], None], limits: Limits,
    ) -> None:  # fmt: skip
        self.run, self.token_file, self.names, self.limits = run, token_file, names, limits
        self.guesses = WrongTokens(say)
        self.replies = Replies()
        self.words = Allowance(limits.per_second, limits.burst)
        self.answered: Counter[str] = Counter()
        self.laying = threading.Lock()
        self.most, self.longest = limits.connections, limits.longest
        self._say, self._trouble = say, ""
        super().__init__(address, _Spoken, limits.body, limits.seconds)

    def count(self, status: int) -> None:
        """By what it is called in the metric."""
        with self.lock:
            self.answered[_NAMES.get(status, "malformed")] += 1

    def token(self) -> bytes:
        """Read each time, so that the one before is void at once; raises Refusal, and tells the operator why once."""
        trouble = ""
        try:
            return tokenfile.read(self.token_file)
        except SetupError as error:
            trouble = str(error)
            raise Refusal(503, "the agent cannot read its token file; its log says why") from None
        finally:
            if trouble and trouble != self._trouble:
                self._say(f"no words over HTTP: {trouble}")
            self._trouble = trouble


class _Spoken(Exchange):
    server: _Server

    def do_POST(self) -> None:
        """Take a word, and answer what the agent says to it."""
        self._answer(self._word)

    def do_GET(self) -> None:
        """Show how the run fares."""
        self._answer(self._status)

    def _other(self) -> None:
        self._answer(self._no_method)

    do_HEAD = do_PUT = do_DELETE = do_OPTIONS = do_PATCH = _other

    def _answer(self, page: Callable[[], Answer]) -> None:
        self.close_connection = True  # one request each: nothing can be smuggled in behind it
        try:
            self._admit()
            self.say(page())
        except Refusal as refusal:
            self.refuse(refusal.status, str(refusal))

    def _admit(self) -> None:
        """Who asks, before what is asked for is looked at; raises Refusal."""
        self._check_host()
        self._check_origin()
        self._check_token()

    def _check_host(self) -> None:
        """A name could be anybody's, and resolved to this machine by whoever owns it."""
        hosts = self.headers.get_all("Host", [])
        name = hosts[0].rpartition(":")[0] or hosts[0] if hosts else ""
        if len(hosts) != 1 or not name or not (is_number(hosts[0]) or name.lower() in self.server.names):
            raise Refusal(403, "ask for it by address, or start the agent with --control-name")

    def _check_origin(self) -> None:
        """Browsers send it with what a web page does; no page has business here."""
        if "Origin" in self.headers:
            raise Refusal(403, "no web page may speak to the agent")

    def _check_token(self) -> None:
        peer, guesses = str(self.client_address[0]), self.server.guesses
        if "Authorization" in self.headers:
            if guesses.too_many(peer):
                raise Refusal(429, "too many wrong tokens of late; wait, or say it on the agent's own machine")
            if bearer.bears(self.headers, self.server.token()):
                guesses.right(peer)
                return
            guesses.wrong(peer)
        raise Refusal(401, "the bearer token is missing or another one")

    def _no_method(self) -> Answer:
        raise Refusal(405, f"GET {STATUS}, or POST {SAYING}VERB")

    def _status(self) -> Answer:
        if self.path != STATUS:
            raise Refusal(404, f"there are GET {STATUS} and POST {SAYING}VERB")
        try:
            return Answer(200, read_trusted(os.path.join(self.server.run.agent, "status.json"), _STATUS_BYTES))
        except (OSError, RightsError):
            raise Refusal(503, "the agent has shown nothing yet") from None

    def _word(self) -> Answer:
        verb = self.path.removeprefix(SAYING)
        if verb == self.path or verb not in WORDS:
            raise Refusal(404, f"POST {SAYING}VERB; over HTTP there are {', '.join(WORDS)}")
        if self.headers.get_content_type().lower() != JSON or "Content-Type" not in self.headers:
            raise Refusal(415, f"say what it is in Content-Type: {JSON}")  # no form of a web page can
        arguments = read(verb, self.body(), str(self.client_address[0]))
        return self._give(verb, arguments)

    def _give(self, verb: str, arguments: dict[str, str]) -> Answer:
        server = self.server
        reply = server.replies.expect(verb, arguments)
        with contextlib.ExitStack() as last:
            last.callback(server.replies.forget, reply)
            self._lay(verb, arguments)
            text = reply.wait(server.limits.patience)
        if not text:
            return Answer(202, line("said", f"{verb} given; the agent has not answered yet, its journal will"))
        return Answer(409, line("error", text)) if is_refusal(text) else Answer(200, line("said", text))

    def _lay(self, verb: str, arguments: dict[str, str]) -> None:
        server = self.server
        with server.laying:  # one at a time: their files are named by time
            if not server.words.take():
                raise Refusal(429, f"more than {server.limits.per_second:g} words a second; try again in a second")
            try:
                if len(os.listdir(os.path.join(server.run.agent, "commands"))) >= server.limits.inbox:
                    raise Refusal(503, "the agent does not read its words; gyrostat status says how it fares")
                give(server.run, verb, arguments)
            except OSError as error:
                raise Refusal(503, f"the word cannot be laid down: {error.strerror}") from None
