"""Fellows: what agents on other nodes forward to the one that decides, and whose ranks nobody hears of just now.

What they forward is taken in as if it had been read here, and remembered as theirs: a trainer's rank 0 that is on
another node can be given no order from this one. Alerts of theirs stand until they say that they are over.
"""

from collections.abc import Iterator, Sequence

from gyrostat.wire import Hello, Record
from gyrostat_rules.alerts import FIRING, RESOLVED, tell
from gyrostat_rules.inputs import AlertTold, Answer, Died, Ended, FaultLine, Forwarded, Item
from gyrostat_rules.moment import Moment
from gyrostat_rules.standing import NODE
from gyrostat_rules.state import Alert, State, key_of

_TAKEN = (Record, Hello, Answer, Ended, Died, FaultLine)
_MOST_ALERTS = 512  # of all other nodes together; rules of one cause inhibit each other long before
_SAID = 300  # characters of an alert's reason


def unwrapped(state: State, moment: Moment, items: Sequence[Item]) -> Iterator[Item]:
    """The items of a batch one by one; whose they are is noted once each has been taken in."""
    for item in items:
        if not isinstance(item, Forwarded):
            yield item
            if isinstance(item, (Hello, Record)) and (known := state.processes.get(key_of(item.role, item.rank))):
                known.node = ""
            continue
        moment.changed = True
        for one in item.items:
            if isinstance(one, AlertTold):
                yield one._replace(labels={**one.labels, "node": item.node}, key=_named(one.key, item.node))
            elif isinstance(one, _TAKEN):
                yield one
                if isinstance(one, (Hello, Record)) and (known := state.processes.get(key_of(one.role, one.rank))):
                    known.node, known.unseen = item.node, False
                    _count(state)


def told(items: Sequence[Item]) -> Iterator[Item]:
    """All that is told, also what is forwarded."""
    for item in items:
        yield from item.items if isinstance(item, Forwarded) else (item,)


def alerted(state: State, moment: Moment, told: AlertTold) -> None:
    """An alert of another node has turned. What this agent's own detectors say of the same goes before."""
    known = state.alerts.get(told.key)
    if known is not None and not known.node:
        return
    if told.state == RESOLVED:
        if known is not None:
            del state.alerts[told.key]
            tell(moment, told.key, known, RESOLVED)
        return
    if told.state != FIRING or told.rule not in {r.alert for r in moment.pack.rules}:
        return
    if known is None:
        if sum(bool(a.node) for a in state.alerts.values()) >= _MOST_ALERTS:
            return
        known = state.alerts[told.key] = Alert(
            told.rule, dict(told.labels), FIRING, told.step, moment.at, told.onset, told.step, told.value, "",
            node=told.labels["node"],
        )  # fmt: skip
        known.why, known.evidence = told.why[:_SAID], dict(told.evidence)
        tell(moment, told.key, known, FIRING)
    known.last_step, known.last_at = max(known.last_step, told.step), moment.at
    known.onset, known.value, known.why = min(known.onset, told.onset), told.value, told.why[:_SAID]
    known.evidence = dict(told.evidence)


def heard(state: State, node: str, well: bool) -> None:
    """Whether a node's agent is heard: no step waits for its ranks while it is not, and nobody takes them for dead."""
    for process in state.processes.values():
        if process.node == node:
            process.unseen = not well
    _count(state)


def _count(state: State) -> None:
    state.unseen = sum(p.unseen and p.role == "trainer" and not p.ended for p in state.processes.values())


def over(state: State, moment: Moment, node: str) -> None:
    """Nobody of the run is on this node any more: what its agent told stands for nothing."""
    if any(p.node == node and not p.ended for p in state.processes.values()):
        return
    state.sources.pop(f"{NODE}{node}", None)
    for key in [key for key, alert in state.alerts.items() if alert.node == node]:
        tell(moment, key, state.alerts.pop(key), RESOLVED)


def forget(state: State, moment: Moment) -> None:
    """This agent decides no more: what was forwarded to it ends here, and is not taken for silence."""
    for name in [name for name in state.sources if name.startswith(NODE)]:
        del state.sources[name]
    for key in [key for key, alert in state.alerts.items() if alert.node]:
        tell(moment, key, state.alerts.pop(key), RESOLVED)
    for key in [key for key, process in state.processes.items() if process.node]:
        for table in (state.processes, state.windows, state.recent):
            table.pop(key, None)
        for bucket in state.buckets.values():
            bucket.pop(key, None)
    state.buckets = {step: bucket for step, bucket in state.buckets.items() if bucket}
    state.unseen = 0


def _named(key: str, node: str) -> str:
    """The alert's name here: of what each node has of its own (a GPU, a disk), the node's name tells them apart."""
    if "role=trainer" in key or not key.endswith("}"):
        return key
    return f"{key[:-1]}{'' if key.endswith('{}') else ','}node={node}}}"
