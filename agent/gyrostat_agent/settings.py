"""The agent's settings: each once, with its unit, who reads it and why the default is what it is."""

from typing import NamedTuple


class Settings(NamedTuple):
    """``mode`` observe, shadow or act: shadow is the default, for trust is earned before it is given.

    ``approvals``: whether what cannot be undone waits for a person. ``run``: the run's name; the directory's by
    default. ``pack_text`` and ``pack_digest``: the rules. ``tick_seconds``: how often time alone is looked at; a
    stall is counted in minutes, so a second is often enough. ``snapshot_turns``: turns between snapshots; a
    restart replays at most so many (about 60 µs each). ``logs``: files of the trainer's to read beside its records,
    ``log_format`` what wrote them, '' to recognise it. ``gpu``, ``host``, ``scrapes`` (URLs of metrics pages) and
    ``receive`` (HOST:PORT for posts, with ``token_file``): what else is looked at; none of it unless asked for.
    ``pins``: certified checkpoints that are kept from the trainer's rotation, 0 for none; two, for the newest may lead
    back to the same trouble; ``pin_bytes`` of them may be copies, none by default: a copy of a large checkpoint takes
    a disk's minutes and room, which nobody has asked for. ``checkpoints``: folders beside that which the trainer names:
    with ``host`` saves are timed there, and the first is where checkpoints are looked for while no trainer names one.
    ``journal_days`` and ``journal_bytes``: how long, and up to which size of the file, the journal keeps
    inputs that neither a restart nor an incident needs; 0 for no limit. Two weeks are as long as a run is looked back
    at; 512 MiB hold that of one rank at a step every two seconds, and are bearable where the disk is memory.
    ``control`` (HOST:PORT) takes people's words over HTTP, '' for none, for they are files; from those who show what is
    in ``control_token``, the agent's own file where that is ''. ``control_names`` are names that this machine may be
    asked for by, beside its addresses. ``alertmanagers`` are the URLs of those that are told of incidents, none unless
    asked for, with the token in the file ``alertmanager_token`` where they want one; what alerts link to lies below
    ``runbook_base``, and at ``external_url`` where people reach the agent's page by another name than its own.
    ``otlp`` is the URL of a collector that is told metrics, logs and traces, '' for none, with the headers in the file
    ``otlp_headers``; ``otlp_insecure`` lets plain http leave this machine, which whoever is on its way can read.
    ``kubernetes``: the job that owns this pod is looked for and may be acted on; not unless asked for, for it takes
    rights and 35 MB of memory.
    ``cluster`` is where the agents of one run elect the one that decides: a folder that all of them reach, or
    ``kubernetes``; '' where there is one agent. ``node`` is this one's name among them, ``cluster_address`` (HOST:PORT)
    where the others reach it, ``cluster_token`` the file with the token that all of them bear.
    """

    run: str
    pack_text: str
    pack_digest: str
    mode: str = "shadow"
    approvals: bool = True
    tick_seconds: float = 1.0
    snapshot_turns: int = 500
    logs: tuple[str, ...] = ()
    log_format: str = ""
    gpu: bool = False
    host: bool = False
    scrapes: tuple[str, ...] = ()
    receive: str = ""
    token_file: str = ""
    checkpoints: tuple[str, ...] = ()
    pins: int = 2
    pin_bytes: int = 0
    journal_days: float = 14.0
    journal_bytes: int = 512 << 20
    control: str = ""
    control_token: str = ""
    control_names: tuple[str, ...] = ()
    alertmanagers: tuple[str, ...] = ()
    alertmanager_token: str = ""
    runbook_base: str = ""
    external_url: str = ""
    otlp: str = ""
    otlp_headers: str = ""
    otlp_insecure: bool = False
    kubernetes: bool = False
    cluster: str = ""
    cluster_address: str = ""
    cluster_token: str = ""
    node: str = ""
