"""Prints dashboards/prometheus/*.rules.yaml as PrometheusRules: python prometheusrules.py | kubectl apply -f -

A program and no copies: there is one place where a rule is written. Standard library alone; a rule file is a mapping
with the one key `groups`, which is what the operator wants below `spec`, so its text is moved in and nothing is parsed.
"""

import sys
from pathlib import Path
from textwrap import indent

RULES = Path(__file__).resolve().parents[3] / "dashboards/prometheus"
HEAD = """---
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: gyrostat-{name}
spec:
"""


def main() -> int:
    """All of them on stdout; exit status 2 where there is none."""
    found = sorted(RULES.glob("*.rules.yaml"))
    if not found:
        print(f"{RULES} holds no *.rules.yaml; run this from a whole clone of the repository", file=sys.stderr)
        return 2
    for path in found:
        text = path.read_text(encoding="utf-8")
        sys.stdout.write(HEAD.format(name=path.name.partition(".")[0]) + indent(text, "  ") + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
