"""Events: counted, bounded, without secrets, and nothing waits for them."""

import pytest
from clusters import NAMESPACE, Cluster

from gyrostat_agent.kubernetes import events
from gyrostat_agent.kubernetes.refusals import (
    AwayError,
)

AT = (events.Regarding("batch/v1", "Job", "j", NAMESPACE, "u"),)


def test_what_is_said_again_is_counted() -> None:
    """One object, whose count grows; by a later life of the agent too."""
    cluster = Cluster()
    for _ in range(2):
        told = events.Events()
        for second in range(3):
            told.tell(events.word_of("incident", "i0001", "open", "loss is nan"), float(second))
        told.send(cluster, AT)
    (event,) = [t for r, t in cluster.things.items() if r.plural == "events"]
    assert event["count"] == 4 and event["type"] == "Warning" and event["reason"] == "IncidentOpen"
    assert event["firstTimestamp"] == "1970-01-01T00:00:00Z" and event["lastTimestamp"] == "1970-01-01T00:00:02Z"


@pytest.mark.parametrize(
    "text",
    ["Authorization: Bearer abc.def.ghi", "token=SECRETSECRET", "https://me:SECRET@host/x", "hf_abcdefghijklmnopq",
     "api_key: SECRET", "eyJhbGciOiJIUzI1NiJ9.SECRETSECRET"],
)  # fmt: skip
def test_no_secret_of_a_log_line_is_published(text: str) -> None:
    """More people may read events than logs."""
    said = events.masked(f"error line: {text} after")
    assert "***" in said and not any(s in said for s in ("SECRET", "abc.def", "me:", "hf_abc")) and "after" in said


def test_a_long_text_is_cut_to_what_the_api_takes() -> None:
    """1 KiB, of whole characters."""
    assert len(events.masked("漢" * 2000).encode()) <= 1024


def test_what_could_not_be_said_waits_and_the_oldest_goes_first() -> None:
    """An API that is away for an hour costs no memory and blocks nobody."""
    cluster = Cluster(lambda number, request: "503")
    told = events.Events()
    for number in range(300):
        told.tell(events.Word("R", f"{number}", False), 0.0)
    with pytest.raises(AwayError):
        told.send(cluster, AT)
    cluster.fault = lambda number, request: ""
    told.send(cluster, AT, most=1000)
    said = {t["message"] for r, t in cluster.things.items() if r.plural == "events"}
    assert told.lost == 100 and len(said) == 200 and "299" in said and "0" not in said
