"""The outbox: the newest state of each alert waits, once, until it is taken; bounded, whatever happens."""

import pytest

from gyrostat_agent.alertpush.outbox import MOST, Outbox
from gyrostat_exporters.alertmanager import Alert


def one(name: str = "A", *, over: float | None = None, mark: str = "", incident: str = "i1") -> Alert:
    return Alert((("alertname", name), ("incident", incident)), (), 1.0, over, mark=mark)


def look(box: Outbox, now: float, *wanted: Alert) -> tuple[Alert, ...]:
    box.look(wanted, now, 1000.0 + now)
    return box.batch()


@pytest.fixture
def box() -> Outbox:
    return Outbox(resend=60.0)


def test_what_is_new_waits_until_it_is_taken(box: Outbox) -> None:
    """Once; what does not arrive waits on and is counted."""
    assert look(box, 0.0, one()) == (one(),)
    box.missed(box.batch())
    assert look(box, 1.0, one()) == (one(),) and (box.sent, box.failed) == (0, 1)
    box.took(box.batch(), 1.0)
    assert look(box, 2.0, one()) == () and (box.sent, box.waiting) == (1, 0)


def test_what_goes_on_is_told_again_by_the_minute(box: Outbox) -> None:
    """And at once where it has changed."""
    look(box, 0.0, one())
    box.took(box.batch(), 0.0)
    assert look(box, 59.0, one()) == () and look(box, 60.0, one()) == (one(),)
    box.took(box.batch(), 60.0)
    assert look(box, 61.0, one(mark="held")) == (one(mark="held"),)


def test_the_newest_state_wins(box: Outbox) -> None:
    """What came while it could not be told is told as it is now: one alert, not a history."""
    for mark in ("open", "acting", "probation"):
        look(box, 0.0, one(mark=mark))
    assert look(box, 1.0, one(over=900.0)) == (one(over=900.0),)


def test_what_changes_while_it_is_sent_is_sent_again(box: Outbox) -> None:
    """The post that is under way says what was, not what is."""
    look(box, 0.0, one(mark="open"))
    sent = box.batch()
    look(box, 0.5, one(mark="held"))
    box.took(sent, 1.0)
    assert box.batch() == (one(mark="held"),)


def test_what_is_over_is_told_once(box: Outbox) -> None:
    """Until it fires again."""
    look(box, 0.0, one(over=900.0))
    box.took(box.batch(), 0.0)
    assert look(box, 500.0, one(over=901.0)) == ()
    assert look(box, 501.0, one()) == (one(),)


def test_what_is_over_and_not_told_outlives_the_view(box: Outbox) -> None:
    """A day later it is in no view any more; whoever was told that it began is told all the same."""
    look(box, 0.0, one(over=900.0))
    assert look(box, 90000.0) == (one(over=900.0),)


def test_a_name_that_an_incident_no_longer_bears_is_over(box: Outbox) -> None:
    """Another rule leads it by now, or nobody is needed any more: the incident itself goes on."""
    look(box, 0.0, one("A"), one("Person"))
    box.took(box.batch(), 0.0)
    assert look(box, 1.0, one("B")) == (one("B"), one("A", over=1001.0), one("Person", over=1001.0))


def test_what_is_gone_without_a_word_is_not_over(box: Outbox) -> None:
    """Nobody said so: it is told no more, and its time runs out there."""
    look(box, 0.0, one())
    box.took(box.batch(), 0.0)
    assert look(box, 1.0) == () and box.standing() == ()
    look(box, 2.0, one())
    assert look(box, 3.0) == ()


def test_what_is_refused_is_not_sent_again_as_it_is(box: Outbox) -> None:
    """Counted as dropped, and tried again when it has changed or a minute later."""
    look(box, 0.0, one())
    box.refused(box.batch(), 0.0)
    assert look(box, 1.0, one()) == () and (box.dropped, box.sent) == (1, 0)
    assert look(box, 60.0, one()) == (one(),)


def test_it_is_bounded(box: Outbox) -> None:
    """However long nobody takes anything: the oldest goes, counted; and what was taken is forgotten in time."""
    for number in range(2 * MOST):
        look(box, 0.0, one(f"A{number}", over=1.0))
    assert (box.waiting, box.dropped) == (MOST, MOST)
    while batch := box.batch():
        assert len(batch) <= 128
        box.took(batch, 0.0)
    assert len(box._taken) <= MOST


def test_what_stands_is_known(box: Outbox) -> None:
    """What goes on, told or not, for the last word of an agent that ends."""
    look(box, 0.0, one("A"), one("B"))
    box.took(box.batch()[:1], 0.0)
    look(box, 1.0, one("A"), one("B"), one("C", over=1.0))
    assert sorted(dict(alert.labels)["alertname"] for alert in box.standing()) == ["A", "B"]
