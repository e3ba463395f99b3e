"""Machines: cards, hosts and links, and the engines that rollouts come from."""

from board import Board, Row
from panel import lines
from query import Query, of, values


def _gpu(*series: str) -> Query:
    return values(*series, role="gpu")


def _host(*series: str) -> Query:
    return values(*series, role="host")


def _engine(*series: str) -> Query:
    return values(*series, role="rollout")


def _share(role: str, used: str, whole: str) -> Query:
    """One series over another, by rank."""
    top, bottom = (f"max by (rank) ({of('gyrostat_value', role=role, series=s)})" for s in (used, whole))
    return Query(f"{top} / {bottom}", f"{role} {{{{rank}}}}")


BOARD = Board(
    "gyrostat-machines",
    "Gyrostat: hardware and inference",
    "What the agent hears with --gpu, --host and --scrape URL; panels of what it was not given are empty.",
    (
        Row(
            "Cards",
            (
                lines(
                    "Utilisation",
                    "percent",
                    "A card that waits for others in a collective shows 100 too.",
                    _gpu("gpu_utilization"),
                    low=0,
                    high=100,
                    runbook="gpu",
                ),
                lines(
                    "Card memory in use",
                    "percentunit",
                    "Of the card's memory.",
                    _share("gpu", "gpu_memory_used_bytes", "gpu_memory_total_bytes"),
                    low=0,
                    high=1,
                    runbook="memory",
                ),
                lines("Temperature", "celsius", "Of the chip.", _gpu("gpu_temperature_celsius"), runbook="gpu"),
                lines(
                    "Power",
                    "watt",
                    "Drawn, and the limit at which it is held.",
                    _gpu("gpu_power_watts", "gpu_power_limit_watts"),
                    low=0,
                    runbook="gpu",
                ),
                lines(
                    "Memory errors and rows",
                    "none",
                    "Errors since the driver was loaded; rows that wait or failed to be replaced.",
                    _gpu("gpu_ecc_.*_volatile_total", "gpu_remapped_rows_(pending|failed)"),
                    low=0,
                    runbook="gpu",
                ),
                lines(
                    "XIDs and lost cards",
                    "none",
                    "XIDs since the agent began, from driver and kernel log; lost: the driver has lost the card.",
                    values("(gpu|host)_xid_total", "gpu_lost", role="gpu|host"),
                    low=0,
                    runbook="hardware",
                ),
            ),
        ),
        Row(
            "Links",
            (
                lines(
                    "NVLinks that are up",
                    "none",
                    "Of those that there are.",
                    _gpu("gpu_nvlink_links", "gpu_nvlink_links_active"),
                    low=0,
                    runbook="links",
                ),
                lines(
                    "Link errors",
                    "none",
                    "NVLink and PCIe, since the driver was loaded.",
                    _gpu("gpu_nvlink_.*(errors|replays|recoveries)_total", "gpu_pcie_replay_total"),
                    low=0,
                    runbook="links",
                ),
                lines(
                    "Network",
                    "Bps",
                    "All interfaces that lead out, and RDMA, which those do not see.",
                    _host("host_(network|rdma)_(receive|transmit)_bytes_per_second"),
                    low=0,
                    runbook="links",
                ),
            ),
        ),
        Row(
            "Hosts",
            (
                lines(
                    "Processors",
                    "percent",
                    "At work, and waiting for disks.",
                    _host("host_cpu_utilization", "host_cpu_iowait"),
                    low=0,
                    high=100,
                    runbook="slow",
                ),
                lines(
                    "Host memory in use",
                    "percentunit",
                    "Memory that programs cannot have, of all.",
                    _share("host", "host_memory_used_bytes", "host_memory_total_bytes"),
                    low=0,
                    high=1,
                    runbook="hostmemory",
                ),
                lines(
                    "Memory of the run",
                    "bytes",
                    "Resident memory of the run's processes, and of its cgroups.",
                    _host("host_run_memory_bytes", "host_cgroup_memory_(limit_)?bytes"),
                    low=0,
                    runbook="hostmemory",
                ),
                lines(
                    "Disks",
                    "Bps",
                    "All physical disks.",
                    _host("host_disk_(read|write)_bytes_per_second"),
                    low=0,
                    runbook="hostmemory",
                ),
                lines(
                    "Killed for memory",
                    "none",
                    "By the kernel, since boot; of the run's cgroups, since the agent began.",
                    _host("host_oom_kills_total", "host_cgroup_oom_kills_total"),
                    low=0,
                    runbook="hostmemory",
                ),
                lines(
                    "Checkpoints",
                    "s",
                    "How long each took to be saved.",
                    values("checkpoint_seconds", role="host|trainer"),
                    low=0,
                    runbook="checkpoints",
                ),
            ),
        ),
        Row(
            "Engines",
            (
                lines(
                    "Requests",
                    "none",
                    "Worked on, and in the queue.",
                    _engine("requests_(running|waiting|paused)"),
                    low=0,
                    runbook="inference",
                ),
                lines(
                    "Cache in use",
                    "percentunit",
                    "Share of the KV cache, and of the looked-up tokens those found in it.",
                    _engine("cache_use", "prefix_hit_share"),
                    low=0,
                    high=1,
                    runbook="inference",
                ),
                lines(
                    "Tokens",
                    "ops",
                    "Read and written, by the second.",
                    _engine("(prompt|generation)_tokens_per_second"),
                    low=0,
                    runbook="inference",
                ),
                lines(
                    "Put off, given up, not finite",
                    "reqps",
                    "Requests by the second that were thrown out of the cache, aborted, or had NaN in their logits.",
                    _engine("(preemptions|aborts|nan_requests)_per_second"),
                    low=0,
                    runbook="inference",
                ),
                lines(
                    "Until the first token",
                    "s",
                    "Half of the requests, and 99 of 100, are faster.",
                    _engine("first_token_seconds/p(50|99)"),
                    low=0,
                    runbook="inference",
                ),
                lines(
                    "From token to token",
                    "s",
                    "Likewise.",
                    _engine("token_seconds/p(50|99)"),
                    low=0,
                    runbook="inference",
                ),
            ),
        ),
    ),
)
