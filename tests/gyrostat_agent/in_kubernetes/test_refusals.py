"""What each refusal of the API server leads to, and what it says."""

import pytest
from clusters import NAMESPACE

from gyrostat_agent.kubernetes.patience import LONGEST_PAUSE, pause_after
from gyrostat_agent.kubernetes.refusals import (
    AwayError,
    ConflictError,
    ForbiddenError,
    MissingError,
    RejectedError,
    refusal,
)
from gyrostat_agent.kubernetes.request import Ref, Request, get

POD = Ref("v1", "pods", "p", NAMESPACE)


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (403, b"{}", ForbiddenError), (404, b"", MissingError), (409, b"{}", ConflictError),
        (410, b"{}", ConflictError),
        (429, b'{"message": "slow down"}', AwayError), (500, b"\xff", AwayError), (503, b"", AwayError),
        (401, b"{}", AwayError), (422, b"[" * 5000, RejectedError),
        (429, b'{"message": "Cannot evict pod as it would violate the pod\'s disruption budget."}', RejectedError),
    ],
)  # fmt: skip
def test_each_status_says_whether_to_ask_again(status: int, body: bytes, kind: type[Exception]) -> None:
    """A busy server is asked again, a disruption budget is a no."""
    assert type(refusal(get(POD), status, body, {})) is kind


def test_a_missing_right_names_verb_resource_and_layer() -> None:
    """Enough to mend it without a search."""
    told = refusal(Request("create", POD._replace(part="eviction")), 403, b'{"message": "no"}', {})
    assert isinstance(told, ForbiddenError) and told.layer == "job"
    assert "create pods/eviction" in str(told) and "deploy/kustomize/rbac/job" in str(told)


def test_retry_after_is_heeded_and_bounded() -> None:
    """No server can send an agent to sleep for a day, nor an odd word wake it at once."""
    for said, seconds in (("7", 7.0), ("1e9", 300.0), ("soon", 0.0), ("nan", 0.0), ("-3", 0.0)):
        told = refusal(get(POD), 429, b"", {"retry-after": said})
        assert isinstance(told, AwayError) and told.after == seconds
    assert all(0.5 <= pause_after(n) <= LONGEST_PAUSE for n in range(200)) and pause_after(0, 90.0) == 90.0
