"""Which address a request comes from, behind proxies that are trusted and only behind those."""

import ipaddress
from collections.abc import Sequence
from functools import lru_cache

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def parse_networks(texts: Sequence[str]) -> tuple[Network, ...]:
    return tuple(ipaddress.ip_network(text, strict=False) for text in texts)


def canonical_network(text: str) -> str:
    """An address, or a network in CIDR notation, as every reader of it takes it: PostgreSQL, which compares it with
    clients' addresses, knows neither netmasks, nor zones, nor zeros in front of a prefix's length. Raises
    `ValueError`."""
    if "%" in text:
        raise ValueError("a zone means nothing outside of its host")
    network = ipaddress.ip_network(text, strict=False)
    return network.compressed if "/" in text else network.network_address.compressed


def client_address(peer: str, forwarded_for: str | None, trusted: Sequence[Network]) -> str:
    """The address nearest to us that is not a trusted proxy's, in its short form.

    Each proxy appends the address that it received from, so the header is read from its end; whatever comes before the
    first address that we don't trust, the client may have made up. Raises `ValueError` for a peer without an address.
    """
    if not trusted:
        return _short(peer)
    address = parse_address(peer)
    hops = [hop.strip() for hop in forwarded_for.split(",")] if forwarded_for else []
    while hops and any(address in network for network in trusted):
        try:
            address = parse_address(hops.pop())
        except ValueError:
            break
    return address.compressed


@lru_cache(maxsize=4096)
def _short(text: str) -> str:
    """The address in its short form. Cached, because most addresses come again, and a text is hashed once."""
    return parse_address(text).compressed


def parse_address(text: str) -> Address:
    """An address, bare or as proxies write it: `[2001:db8::1]:443`, `192.0.2.1:443`. An IPv4 address that arrives
    as an IPv6 one (`::ffff:192.0.2.1`) is the IPv4 address."""
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    address = ipaddress.ip_address(text.partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
