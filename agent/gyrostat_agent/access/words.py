"""Words that may come over a network: which verbs, with which arguments; everything else stays at the machine.

What is here says yes or no to something that the agent has decided and shown, or makes it do less for a while. What is
not widens what the agent may do (arm), ends a doubt about what lies on the disk (trust), or chooses among checkpoints
(rollback, tag): whoever says that must have looked there, as the agent's user.
"""

import json
from collections.abc import Mapping

from gyrostat.wire.fields import clean
from gyrostat_agent.exchange import Refusal
from gyrostat_rules.inputs import Verb
from gyrostat_rules.requests import NOT_DONE

# The arguments that each must have, and those that it may have; all text.
WORDS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    Verb.APPROVE: (("action",), ()),
    Verb.DENY: (("action",), ()),
    Verb.PAUSE: ((), ()),
    Verb.RESUME: ((), ()),
    Verb.SILENCE: (("reason",), ("matchers", "all", "begins", "seconds", "ends")),
    Verb.UNSILENCE: (("silence",), ()),
}
_OF_LINES = ("matchers",)  # one a line
_LONGEST, _LONGEST_NAME = 2000, 80  # characters


def read(verb: str, body: bytes, address: str) -> dict[str, str]:
    """The command's arguments, from a JSON object of texts; raises Refusal, 400.

    ``by`` says where it came from first of all: the name behind it is what whoever has the token calls themselves.
    """
    must, may = WORDS[verb]
    try:
        said = json.loads(body.decode("utf-8"))
    except (ValueError, RecursionError):
        raise Refusal(400, 'the body must be JSON, e.g. {"action": "i0001.2"}') from None
    if not isinstance(said, dict) or not all(isinstance(value, str) for value in said.values()):
        raise Refusal(400, "the body must be a JSON object, and each value in it text")
    if missing := [name for name in must if not said.get(name)]:
        raise Refusal(400, f"{verb} needs {', '.join(missing)}")
    if strange := said.keys() - {*must, *may, "by"}:
        taken = ", ".join((*must, *may, "by"))
        raise Refusal(400, f"{verb} takes {taken}, and no {sorted(strange)[0]!r}")
    if any(len(value) > _LONGEST for value in said.values()):
        raise Refusal(400, f"{_LONGEST} characters are the most for a value")
    name = clean(said.pop("by", "")).strip()[:_LONGEST_NAME]
    by = f"http {address} ({name})" if name else f"http {address}"
    return {**{key: _cleaned(key, value) for key, value in said.items()}, "by": by}


def _cleaned(key: str, value: str) -> str:
    return "\n".join(map(clean, value.split("\n"))) if key in _OF_LINES else clean(value)


def is_refusal(answer: str) -> bool:
    """True where the agent did not do what was asked, for which it says a reason."""
    return answer.startswith(NOT_DONE)
