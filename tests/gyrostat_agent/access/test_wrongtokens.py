"""Guesses are slowed down by whom they come from and all together, in virtual time; and said once a burst."""

import pytest

from gyrostat_agent.access.wrongtokens import WrongTokens


class Guessing:
    """Whoever guesses as fast as they are let, and the clock."""

    def __init__(self) -> None:
        self.now, self.said = 1000.0, list[str]()
        self.wrong = WrongTokens(self.said.append, lambda: self.now)

    def guess(self, address: str) -> bool:
        """True where the guess was looked at."""
        if self.wrong.too_many(address):
            return False
        self.wrong.wrong(address)
        return True


@pytest.fixture
def guessing() -> Guessing:
    """A clock that stands unless it is moved."""
    return Guessing()


def test_one_address_is_slowed_down(guessing: Guessing) -> None:
    """A few at once, for people mistype; then one in five seconds, however many are tried."""
    assert sum(guessing.guess("10.0.0.7") for _ in range(1000)) == 5
    guessing.now += 3600.0
    looked_at = 0
    for _ in range(1000):
        guessing.now += 0.1
        looked_at += guessing.guess("10.0.0.7")
    assert 20 <= looked_at <= 26


def test_others_go_on_meanwhile(guessing: Guessing) -> None:
    """One address's guesses do not keep the next one out."""
    for _ in range(100):
        guessing.guess("10.0.0.7")
    assert not guessing.wrong.too_many("10.0.0.8")


def test_many_addresses_are_slowed_down_together(guessing: Guessing) -> None:
    """Nobody gains by having a whole network; one who has shown the right token is not shut out with them."""
    guessing.wrong.right("192.168.1.1")
    looked_at = sum(guessing.guess(f"10.0.{n // 250}.{n % 250}") for n in range(3000))
    assert looked_at == 50
    assert guessing.wrong.too_many("10.9.9.9") and not guessing.wrong.too_many("192.168.1.1")


def test_of_ipv6_a_network_is_one(guessing: Guessing) -> None:
    """A machine has 2**64 addresses of its own there."""
    assert sum(guessing.guess(f"2001:db8::{n:x}") for n in range(1, 100)) == 5
    assert guessing.guess("2001:db8:0:1::1")


def test_a_burst_is_said_once(guessing: Guessing) -> None:
    """With the address; again after a minute's peace; a flood of addresses does not fill the log."""
    for _ in range(100):
        guessing.guess("10.0.0.7")
    assert len(guessing.said) == 1 and "10.0.0.7" in guessing.said[0]
    guessing.now += 61.0
    guessing.guess("10.0.0.7")
    assert len(guessing.said) == 2
    for n in range(1, 250):
        guessing.now += 1.0
        guessing.guess(f"10.0.1.{n}")
    assert len(guessing.said) <= 16


def test_its_memory_is_bounded(guessing: Guessing) -> None:
    """However many addresses come."""
    for n in range(5000):
        guessing.wrong.wrong(f"10.{n // 62500}.{n // 250 % 250}.{n % 250}")
    assert len(guessing.wrong._peers) <= 1024
