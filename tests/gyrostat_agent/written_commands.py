"""Commands as pages show them: found in fences and in backticks, split as a shell would, held to the real programs."""

import re
import shlex
from collections.abc import Iterator

import click

from gyrostat_agent.cli.group import gyrostat

# What the one on call may be told to type. Nothing here changes more than its page says beside it.
PROGRAMS = {
    "awk", "curl", "dcgmi", "dd", "df", "dmesg", "du", "ethtool", "free", "gyrostat", "grep", "head", "ibstat",
    "iostat", "ipcs", "journalctl", "kubectl", "last", "ls", "lspci", "nvidia-smi", "pidstat", "promtool", "ps",
    "py-spy", "rdma", "rm", "sacct", "scontrol", "sort", "ss", "tail", "uniq",
}  # fmt: skip
SCRATCH = {"dd": "of=CHECKPOINTS/try", "rm": "CHECKPOINTS/try"}  # the one file that is written and taken away again
VERBS = {
    "kubectl": {"auth", "cordon", "describe", "exec", "get", "logs", "top", "uncordon"},
    "scontrol": {"requeue", "update"},
    "promtool": {"check"},
    "dcgmi": {"diag"},
}
_FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`([^`]+)`")
_HOLDER = re.compile(r"[A-Z][A-Z_]*")  # stands for what the reader puts there


def fences(text: str, *kinds: str) -> list[str]:
    """What stands in the fenced blocks of those kinds, without its indentation."""
    found = _FENCE.findall(text)
    blocks = [(pad, body.splitlines()) for pad, kind, body in found if kind in kinds]
    return ["\n".join(line.removeprefix(pad) for line in lines) for pad, lines in blocks]


def spans(text: str) -> list[str]:
    """What stands in backticks outside of fences, each on one line; a table's escaped bar is a bar."""
    return [" ".join(span.replace(r"\|", "|").split()) for span in _SPAN.findall(_FENCE.sub("", text))]


def written(text: str) -> list[str]:
    """Every command of a page: each line of a shell fence, and each span in backticks with a blank in it."""
    lines = [line.strip() for block in fences(text, "sh") for line in block.splitlines()]
    return [line for line in lines if line and not line.startswith("#")] + [s for s in spans(text) if " " in s]


def parts(line: str) -> Iterator[list[str]]:
    """The words of each program in a line with pipes; what stands behind ``--`` of an exec is one more."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in [*lexer, "|"]:
        if word.strip("|&;"):
            words.append(word)
            continue
        yield words
        if words[:2] == ["kubectl", "exec"]:
            yield words[words.index("--") + 1 :]
        words = []


def fault(words: list[str]) -> str:
    """What is wrong with the words of one program, or ''."""
    if not words or words[0] not in PROGRAMS:
        return f"{words[:1]} is no program that a page may name"
    if words[0] == "gyrostat":
        return parses(words[1:])
    if (only := SCRATCH.get(words[0])) and only not in words[1:]:
        return f"{words} touches more than {only}"
    verbs = VERBS.get(words[0])
    return f"{words[0]} {words[1]} is not among what a page may name" if verbs and words[1] not in verbs else ""


def parses(words: list[str]) -> str:
    """Why the real command line would not take these words, or ''. Nothing is run."""
    command: click.Command | None = gyrostat
    context = click.Context(gyrostat, info_name="gyrostat")
    while isinstance(command, click.Group) and words:
        command, name, words = command.get_command(context, words[0]), words[0], words[1:]
        if command is None:
            return f"there is no command {name!r}"
        context = click.Context(command, info_name=name, parent=context, **command.context_settings)
    if command is None or isinstance(command, click.Group):
        return ""
    try:
        values, rest, _ = command.make_parser(context).parse_args(list(words))
    except click.UsageError as error:
        return error.format_message()
    return f"too many words: {rest}" if rest else _values(command, context, values)


def _values(command: click.Command, context: click.Context, values: dict[str, object]) -> str:
    for param in command.params:
        given = values.get(str(param.name))
        if param.required and given in (None, (), []):
            return f"{param.name} is missing"
        if not isinstance(given, str) or _HOLDER.fullmatch(given) or isinstance(param.type, click.Path):
            continue
        try:
            param.type.convert(given, param, context)
        except click.BadParameter as error:
            return error.format_message()
    return ""
