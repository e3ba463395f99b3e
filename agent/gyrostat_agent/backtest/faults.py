"""What kind of fault an alert tells, in the words of a corpus."""

from gyrostat_rules.pack import RulePack


def fault_of(pack: RulePack, alert: str) -> str:
    """The kind of fault that the rule of that name tells; '' where it tells none."""
    return next((rule.fault for rule in pack.rules if rule.alert == alert), "")
