"""Layout: the folder of one stack: configurations made from the examples beside this folder, and who listens where."""

from pathlib import Path
from typing import NamedTuple

from programs import free_port

PROMETHEUS = Path(__file__).resolve().parent.parent / "prometheus"
_HOOK = "http://127.0.0.1:9099"
_QUICK = {
    "group_wait: 30s": "group_wait: 0s",
    "group_wait: 10s": "group_wait: 0s",
    "group_interval: 5m": "group_interval: 1s",
}


class Ports(NamedTuple):
    """Ports of loopback."""

    agent: int
    prometheus: int
    alertmanager: int

    @classmethod
    def free(cls) -> "Ports":
        """Three where nobody listens now."""
        return cls(free_port(), free_port(), free_port())


def write(folder: Path, ports: Ports, hook: str) -> None:
    """The examples as they stand, but for addresses, and for waits that nobody would sit through."""
    for name in ("run", "checkpoints", "prometheus-data", "alertmanager-data"):
        (folder / name).mkdir(mode=0o700)
    for rules in PROMETHEUS.glob("*.rules.yaml"):
        (folder / rules.name).write_text(rules.read_text(encoding="utf-8").replace("interval: 1m", "interval: 1s"))
    scraped = (PROMETHEUS / "prometheus.example.yaml").read_text(encoding="utf-8")
    scraped = scraped.replace("_interval: 15s", "_interval: 1s").replace("127.0.0.1:9466", f"127.0.0.1:{ports.agent}")
    alerting = (
        f'\nalerting:\n  alertmanagers: [{{static_configs: [{{targets: ["127.0.0.1:{ports.alertmanager}"]}}]}}]\n'
    )
    (folder / "prometheus.yaml").write_text(scraped + alerting)
    routed = (PROMETHEUS / "alertmanager.example.yaml").read_text(encoding="utf-8").replace(_HOOK, hook)
    for slow, quick in _QUICK.items():
        routed = routed.replace(slow, quick)
    (folder / "alertmanager.yaml").write_text(routed)
