"""``gyrostat status``: how the run and its agent fare now."""

import json
import os
import time
from datetime import datetime
from typing import Any

import click

from gyrostat.wire import RunDirectory
from gyrostat.wire.fields import (
    MAX_MESSAGE,
    MessageError,
    clean,
    finite,
    mapping,
    read,
    read_numbers,
    rows,
    spell,
    tables,
    text,
    whole,
)
from gyrostat_agent.cli.options import as_json, watched_run_dir
from gyrostat_agent.errors import EXIT_FAULT
from gyrostat_agent.rundir import existing, held

_NAMED = 3  # rules named with what they want; a wall of them would hide what waits for a person
_STALE_SECONDS = 30.0  # an agent that is well writes it every second
_ROWS = {"alerts": 3, "off": 2, "armed": 2}  # lists of so many words each


@click.command()
@watched_run_dir
@as_json
@click.pass_context
def status(ctx: click.Context, run_dir: str, as_json: bool) -> None:
    """Say how the run in RUN_DIR and its agent fare.

    Exit status 0 where an agent watches it and is not blind, else 1.

    \b
    gyrostat status /var/tmp/my-run
    gyrostat status --json /var/tmp/my-run | jq .blind
    """
    run = existing(run_dir)
    holder = held(run)
    said, trouble = _shown(run, holder)
    said.setdefault("off", None)  # no list of rules is not an empty one
    said["agent"] = holder or "none: nobody watches this run"
    if trouble:
        said["ready"], said["blind"] = False, [*said.get("blind", []), trouble]
    if as_json:
        click.echo(json.dumps(said, indent=2))
    else:
        _show(said, bool(holder))
    ctx.exit(0 if holder and said.get("ready") is True else EXIT_FAULT)


def shown_now(run: RunDirectory) -> tuple[dict[str, Any], str]:
    """What the agent shows, and why that is not how the run fares now, or ''."""
    holder = held(run)
    said, trouble = _shown(run, holder)
    return said, trouble or ("" if holder else "none: nobody watches this run; this is what the last agent saw")


def _shown(run: RunDirectory, holder: str) -> tuple[dict[str, Any], str]:
    said, trouble = last_shown(run)
    return said, trouble or _stale(said, holder, time.time())


def last_shown(run: RunDirectory) -> tuple[dict[str, Any], str]:
    """What the agent showed last, and what is wrong with that, or ''. Nothing in the file is trusted."""
    path = os.path.join(run.agent, "status.json")
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(fd, "rb") as file:
            return read("status.json", file.read(MAX_MESSAGE + 1) or b"", _checked), ""
    except FileNotFoundError:
        return {}, "there is no status.json: the agent has shown nothing yet"
    except OSError as error:
        return {}, f"status.json is not readable: {error.strerror}"
    except MessageError as error:
        return {}, f"status.json is not readable: {error}"


def _checked(raw: dict[str, Any]) -> dict[str, Any]:
    """It as it is, if all that is shown of it has its type; raises MessageError."""
    for key in ("run", "mode", "observe_only", "proposed"):
        text(raw, key)
    for key in raw.keys() & {"step", "segment", "incidents", "pid"}:
        whole(raw, key)
    finite({"at": 0.0, **raw}, "at")
    for key, width in {**_ROWS, "blind": 0}.items():
        for row in rows(raw, key):
            words = row if width and isinstance(row, list) else [row]
            if len(words) != (width or 1) or not all(isinstance(word, str) for word in words):
                raise MessageError(f"'{key}' is not what an agent writes")
    for rank in tables(raw, "ranks"):
        text(rank, "role"), text(rank, "ended"), whole(rank, "rank"), whole(rank, "step"), finite(rank, "at")
        read_numbers(rank, "values")
    for one in tables(raw, "open"):
        text(one, "id"), text(one, "kind"), text(one, "state"), text(one, "why"), whole(one, "onset")
    for one in tables(raw, "held"):
        text(one, "action"), text(one, "remedy"), text(one, "does"), text(one, "reason")
        finite({"until": 0.0, **{k: v for k, v in one.items() if v is not None}}, "until")
    for one in [*tables(raw, "pushed"), *tables(raw, "exported")]:
        text(one, "to"), text(one, "fault"), whole(one, "sent"), whole(one, "waiting"), whole(one, "dropped")
    for one in tables(raw, "exported"):
        text(one, "signal")
    fellows = mapping(raw, "fellows")
    for key in ("node", "leader", "fault"):
        text(fellows, key)
    for key in fellows.keys() & {"term", "heard", "missing", "waiting", "dropped"}:
        whole(fellows, key)
    for one in tables(raw, "silences"):
        text(one, "id"), text(one, "by"), text(one, "reason"), finite(one, "begins"), finite(one, "ends")
        if not all(isinstance(matcher, str) for matcher in rows(one, "matchers")):
            raise MessageError("'matchers' is not what an agent writes")
    return raw


def _stale(said: dict[str, Any], holder: str, now: float) -> str:
    """Why this is not what the agent sees now, or ''. ``holder`` is the words of its lock, '' where none lives."""
    pid, age = said.get("pid", 0), now - said.get("at", 0.0)
    if holder.startswith("process ") and not holder.startswith(f"process {pid} "):
        return f"stale: process {pid} wrote this, and {holder} has shown nothing yet"
    if holder and abs(age) > _STALE_SECONDS:
        return f"stale: the agent has shown nothing for {age:.0f} s"
    return ""


def _show(said: dict[str, Any], alive: bool) -> None:
    _echo(f"run       {said.get('run', '?')}, step {said.get('step', '?')}, segment {said.get('segment', '?')}")
    _echo(f"agent     {said['agent']}, mode {said.get('mode', '?')}")
    if said.get("observe_only"):
        _echo(f"          observes only: {said['observe_only']}")
    if said.get("paused"):
        _echo("          paused: nothing is done until gyrostat resume")
    if not alive:
        _echo("          what follows is what the last agent saw")
    for blind in said.get("blind", []):
        _echo(f"blind     {blind}")
    for rank in said.get("ranks", []):
        _echo(f"{text(rank, 'role'):<9} {rank['rank']}: {_rank(rank)}")
    for rule, severity, state in said.get("alerts", []):
        _echo(f"alert     {rule} {state} ({severity})")
    if off := _off(said):
        _echo(f"rules     {off}")
    for rule, words in said.get("armed", []):
        _echo(f"armed     {rule}: {words}")
    for one in standing(said):
        _echo(f"silence   {silence_line(one)}")
    for one in said.get("open", []):
        _echo(f"incident  {_incident(one)}")
    for one in said.get("held", []):
        for line in _waits(one):
            _echo(line)
    if fellows := said.get("fellows"):
        _echo(f"cluster   {_fellows(fellows)}")
    for one in said.get("pushed", []):
        _echo(f"alertmgr  {_pushed(one)}")
    for one in said.get("exported", []):
        _echo(f"otlp      {text(one, 'signal')} to {_pushed(one)}")
    if said.get("proposed"):
        _echo(f"proposed  {said['proposed']}")
    _echo(f"incidents {said.get('incidents', 0)} so far; gyrostat incidents shows them")


def standing(said: dict[str, Any]) -> list[dict[str, Any]]:
    """The silences that it shows and that are not over by now."""
    return [one for one in said.get("silences", []) if one["ends"] > time.time()]


def silence_line(one: dict[str, Any]) -> str:
    """A silence for people, in local time."""
    begins = "" if one["begins"] <= time.time() else f" from {_local(one['begins'])}"
    what = ", ".join(one.get("matchers", [])) or "everything"
    return f"{text(one, 'id')}: {what}{begins} until {_local(one['ends'])}, by {one['by']}: {one['reason']}"


def _local(at: float) -> str:
    try:
        return datetime.fromtimestamp(at).astimezone().strftime("%Y-%m-%d %H:%M %z")
    except (OverflowError, ValueError, OSError):
        return f"{at:g}"


def _incident(one: dict[str, Any]) -> str:
    why = f", {text(one, 'why')}" if text(one, "state") == "stopped" else ""
    return f"{text(one, 'id')} {text(one, 'kind')}: {text(one, 'state')}{why} (began at step {one.get('onset', '?')})"


def _waits(one: dict[str, Any]) -> list[str]:
    """What it would do, what it waits for, and how long anybody has."""
    does = f" {text(one, 'remedy')}" if text(one, "remedy") else ""
    plan = f": {text(one, 'does')}" if text(one, "does") else ""
    lines = [f"held      {text(one, 'action')}{does}{plan}", f"          {text(one, 'reason')}"]
    if (until := one.get("until")) is not None:
        left = max(0.0, until - time.time())
        given = f"{left / 60:.0f} min" if left >= 90 else f"{left:.0f} s"
        lines.append(f"          given up in {given}")
    return lines


def _fellows(one: dict[str, Any]) -> str:
    """Which of a run's agents decides, and how this one fares among them."""
    if one.get("leads"):
        missed = f", {one['missing']} not heard" if one.get("missing") else ""
        return f"{one['node']} decides for the run (term {one.get('term')}): {one.get('heard')} other nodes{missed}"
    dropped = f", {one['dropped']} dropped" if one.get("dropped") else ""
    return f"{one['node']}: {one['leader'] or 'nobody'} decides; {one.get('waiting')} wait to be told{dropped}"


def _pushed(one: dict[str, Any]) -> str:
    """How an Alertmanager or a collector fares: what it does not know is not silence."""
    dropped = f", {one['dropped']} dropped" if one["dropped"] else ""
    trouble = f"; {text(one, 'fault')}" if one["fault"] else ""
    return f"{text(one, 'to')}: {one['sent']} sent, {one['waiting']} wait{dropped}{trouble}"


def _off(said: dict[str, Any]) -> str:
    """Which rules have nothing to look at: else their silence would read as clean."""
    if said["off"] is None:
        return "too early to say which have nothing to look at: 20 steps are waited for" if "run" in said else ""
    named = ", ".join(f"{rule} (wants {wants})" for rule, wants in said["off"][:_NAMED])
    more = len(said["off"]) - _NAMED
    rest = f", and {more} more; gyrostat status --json names them all" if more > 0 else ""
    return f"switched off for want of data: {named}{rest}" if named else ""


def _echo(line: str) -> None:
    click.echo(clean(line))


def _rank(rank: dict[str, Any]) -> str:
    ended = text(rank, "ended")
    when = f", ended: {ended}" if ended else f", {max(0.0, time.time() - rank['at']):.0f} s ago"
    shown = read_numbers(rank, "values")
    values = "  ".join(f"{k} {_short(shown[k])}" for k in ("loss", "reward", "entropy", "grad_norm") if k in shown)
    step = f"step {rank['step']}" if rank["step"] >= 0 else "no step"  # a supervisor counts none
    return f"{step}{when}  {values}".rstrip()


def _short(value: float) -> str:
    return f"{value:.4g}" if value - value == 0.0 else spell(value)
