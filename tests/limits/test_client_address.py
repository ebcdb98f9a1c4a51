"""Whose address counts: the nearest that is no trusted proxy's. What a client may have made up never does."""

import ipaddress

from hypothesis import given
from hypothesis import strategies as st

from app.auth.client_address import client_address, parse_networks
from tests.support.together import together

PROXIES = parse_networks(["10.0.0.0/8", "fd00::/8", "2001:db8:1::5"])
CLIENT, LIE = "203.0.113.7", "198.51.100.9"


def seen(peer: str, forwarded_for: str | None = None, trusted: tuple[str, ...] | None = None) -> str:
    networks = PROXIES if trusted is None else parse_networks(trusted)
    return client_address(peer, forwarded_for, networks)


@together(
    ("peer", "forwarded_for", "address"),
    [
        (CLIENT, None, CLIENT),
        (CLIENT, LIE, CLIENT),
        ("10.0.0.1", None, "10.0.0.1"),
        ("10.0.0.1", CLIENT, CLIENT),
        ("10.0.0.1", f"{LIE}, {CLIENT}", CLIENT),
        ("10.0.0.1", f"{LIE}, {CLIENT}, 10.2.3.4, 10.9.9.9", CLIENT),
        ("10.0.0.1", f"{LIE}, 10.0.0.2, {CLIENT}, 10.2.3.4", CLIENT),
        ("10.0.0.1", "10.0.0.2, 10.0.0.3", "10.0.0.2"),
        ("10.0.0.1", f"  {CLIENT}  ", CLIENT),
        ("10.0.0.1", f"{CLIENT}:51234", CLIENT),
        ("fd00::1", "2001:db8::7", "2001:db8::7"),
        ("fd00::1", "[2001:db8::7]:443, 10.0.0.2", "2001:db8::7"),
        ("fd00::1", "[2001:db8::7]", "2001:db8::7"),
        ("2001:db8:1::5", CLIENT, CLIENT),
        ("2001:db8:1::6", CLIENT, "2001:db8:1::6"),
        ("::ffff:10.0.0.1", f"::ffff:{CLIENT}", CLIENT),
        (f"::ffff:{CLIENT}", LIE, CLIENT),
        ("fe80::1%eth0", None, "fe80::1"),
    ],
)
def test_behind_proxies(peer: str, forwarded_for: str | None, address: str) -> None:
    assert seen(peer, forwarded_for) == address


@together("nonsense", ["", ",", "unknown", "_hidden", "203.0.113", f"{CLIENT};", "x" * 5000])
def test_what_is_no_address_ends_the_way_back(nonsense: str) -> None:
    assert seen("10.0.0.1", f"{LIE}, {nonsense}") == "10.0.0.1"
    assert seen("10.0.0.1", f"{LIE}, {nonsense}, 10.0.0.2") == "10.0.0.2"


def test_without_trusted_proxies_the_header_is_nothing() -> None:
    assert seen("10.0.0.1", CLIENT, trusted=()) == "10.0.0.1"


@given(st.lists(st.ip_addresses().map(str) | st.text(max_size=20), max_size=6), st.ip_addresses())
def test_a_client_never_passes_for_another(claimed: list[str], client: ipaddress.IPv4Address) -> None:
    """Whatever a client writes into the header, the proxy that it reaches appends where it came from."""
    true = client_address(str(client), None, ())
    if any(ipaddress.ip_address(true) in network for network in PROXIES):
        return
    assert client_address("10.0.0.1", ", ".join([*claimed, str(client)]), PROXIES) == true
    assert client_address(str(client), ", ".join(claimed), PROXIES) == true
