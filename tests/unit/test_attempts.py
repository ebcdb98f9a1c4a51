"""How often one address tries to sign in."""

from ipaddress import ip_address

import pytest

from app.core.errors import RateLimitExceeded
from app.sessions.attempts import SignInAttempts


def outcome(attempts: SignInAttempts, address: str) -> bool:
    try:
        attempts.count(address)
    except RateLimitExceeded:
        return False
    return True


def test_an_address_has_so_many_a_minute() -> None:
    attempts = SignInAttempts(per_minute=3)
    assert [outcome(attempts, "192.0.2.1") for _ in range(5)] == [True, True, True, False, False]
    assert outcome(attempts, "192.0.2.2")


@pytest.mark.parametrize(("other", "counted"), [("2001:db8::ffff", True), ("2001:db8:0:1::1", False)])
def test_neighbours_in_a_network_of_one_subscriber_are_counted_together(other: str, counted: bool) -> None:
    attempts = SignInAttempts(per_minute=1)
    assert outcome(attempts, "2001:db8::1")
    assert outcome(attempts, other) is not counted


def test_no_number_of_addresses_fills_the_memory() -> None:
    attempts = SignInAttempts(per_minute=1)
    for number in range(10_050):
        assert outcome(attempts, str(ip_address(0x0A000000 + number)))
    assert outcome(attempts, "10.0.0.0"), "the first ones are forgotten"
    assert not outcome(attempts, str(ip_address(0x0A000000 + 10_049)))
