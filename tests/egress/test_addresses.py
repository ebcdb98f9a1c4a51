"""Which addresses are public: every known trick is refused, and so is all of IPv6 that could carry one."""

import random
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

from hypothesis import given, settings
from hypothesis import strategies as st

from app.webhooks.egress.addresses import AddressRule
from tests.support.together import together

TRICKS = {
    "loopback": "127.0.0.1",
    "all of loopback": "127.255.255.254",
    "this host": "0.0.0.0",
    "this network": "0.1.2.3",
    "private a": "10.0.0.1",
    "private b": "172.16.0.1",
    "end of private b": "172.31.255.255",
    "private c": "192.168.1.1",
    "link-local": "169.254.1.1",
    "metadata": "169.254.169.254",
    "metadata of another cloud": "168.63.129.16",
    "metadata behind carrier-grade nat": "100.100.100.200",
    "metadata in protocol assignments": "192.0.0.192",
    "carrier-grade nat": "100.64.0.1",
    "benchmarks": "198.18.0.1",
    "documentation": "203.0.113.7",
    "6to4 relay": "192.88.99.1",
    "multicast": "224.0.0.1",
    "end of multicast": "239.255.255.255",
    "reserved": "240.0.0.1",
    "broadcast": "255.255.255.255",
    "v6 loopback": "::1",
    "v6 unspecified": "::",
    "v4-mapped loopback": "::ffff:127.0.0.1",
    "v4-mapped in hex": "::ffff:7f00:1",
    "v4-mapped public": "::ffff:8.8.8.8",
    "v4-compatible": "::7f00:1",
    "v4-translated": "::ffff:0:7f00:1",
    "nat64": "64:ff9b::7f00:1",
    "local nat64": "64:ff9b:1::7f00:1",
    "6to4": "2002:7f00:1::1",
    "teredo": "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "orchid": "2001:20::1",
    "isatap": "::5efe:7f00:1",
    "discard": "100::1",
    "unique local": "fd00::1",
    "v6 metadata": "fd00:ec2::254",
    "v6 link-local": "fe80::1",
    "v6 link-local with a zone": "fe80::1%eth0",
    "public with a zone": "2606:4700::1111%1",
    "site-local": "fec0::1",
    "v6 multicast": "ff02::1",
    "global multicast": "ff0e::1",
    "segment routing": "5f00::1",
    "v6 documentation": "2001:db8::1",
    "new v6 documentation": "3fff::1",
    "no address": "localhost",
    "nothing": "",
}
PUBLIC = ("1.1.1.1", "8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2001:4860:4860::8888", "2a00:1450::1")
NOBODY = AddressRule()


@together("name", TRICKS)
def test_a_trick_is_refused(name: str) -> None:
    assert not NOBODY.admits(TRICKS[name])


@together("address", PUBLIC)
def test_a_public_address_is_admitted(address: str) -> None:
    assert NOBODY.admits(address)


def test_what_the_operator_opened_and_nothing_beside_it() -> None:
    rule = AddressRule(("10.1.0.0/16", "fd00:1::/32"))
    assert rule.admits("10.1.2.3")
    assert rule.admits("fd00:1::5")
    for address in (
        "10.2.0.1",
        "::ffff:10.1.2.3",
        "64:ff9b::a01:203",
        "2002:a01:203::1",
        "fd00:2::1",
        "fd00:1::5%eth0",
    ):
        assert not rule.admits(address), address
    assert rule.admits("1.1.1.1")


def leads_nowhere_but_out(address: IPv6Address) -> bool:
    """By the names that Python has for the ranges, which are not those that the code under test goes by."""
    return (
        address in IPv6Network("2000::/3")
        and not (address.ipv4_mapped or address.sixtofour or address.teredo)
        and not (address.is_private or address.is_multicast or address.is_reserved or address.is_link_local)
        and not (address.is_loopback or address.is_site_local or address.is_unspecified)
    )


@settings(max_examples=100)
@given(st.integers(0, 2**128 - 1).map(IPv6Address) | st.ip_addresses(v=6))
def test_no_ipv6_address_that_leads_inside(address: IPv6Address) -> None:
    assert not NOBODY.admits(str(address)) or leads_nowhere_but_out(address)


def test_none_of_very_many() -> None:
    chance = random.Random(28)
    admitted = 0
    for _ in range(20_000):
        # Evenly over the whole space three quarters are outside the public range: half of them are drawn from it.
        number = chance.getrandbits(128) if chance.random() < 0.5 else chance.getrandbits(125) | 1 << 125
        if NOBODY.admits(str(IPv6Address(number))):
            admitted += 1
            assert leads_nowhere_but_out(IPv6Address(number))
    assert admitted > 5_000


_PREFIXES = [
    *("::", "::ffff:0:0", "::ffff:0:0:0", "64:ff9b::", "64:ff9b:1::", "2001::", "2002::", "100::"),
    *("fc00::", "fe80::", "fec0::", "ff00::", "5f00::", "3fff::", "2001:db8::", "2001:10::", "2001:20::"),
]


@together("prefix", _PREFIXES)
def test_no_ipv4_address_in_disguise(prefix: str) -> None:
    chance = random.Random(prefix)
    for _ in range(1_000):
        inner = chance.getrandbits(32) << (80 if prefix == "2002::" else 0)
        assert not NOBODY.admits(str(IPv6Address(int(IPv6Address(prefix)) | inner)))


def test_no_ipv4_address_that_leads_inside() -> None:
    chance = random.Random(32)
    for _ in range(20_000):
        address = IPv4Address(chance.getrandbits(32))
        if NOBODY.admits(str(address)):
            assert address.is_global
            assert not address.is_multicast


def test_spellings_are_read_as_the_system_reads_them() -> None:
    assert ip_address("::ffff:127.0.0.1") == ip_address("::ffff:7f00:1")
    assert not NOBODY.admits("0:0:0:0:0:FFFF:7F00:0001")
    assert not NOBODY.admits(" 1.1.1.1")
    assert not NOBODY.admits("1.1.1.01")
