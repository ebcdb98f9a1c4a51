"""Which addresses a webhook may be sent to: public ones, and those that the operator allows.

The rule goes by lists of our own. `ipaddress.is_global` calls many an address global that leads back inside: a NAT64 or
6to4 form of 127.0.0.1, a multicast group, a site-local address.
"""

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_V4_REFUSED = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # this host
        "10.0.0.0/8",
        "100.64.0.0/10",  # carrier-grade NAT, and a metadata service at 100.100.100.200
        "127.0.0.0/8",
        "168.63.129.16/32",  # a metadata service on an address that looks public
        "169.254.0.0/16",  # link-local, and with it most metadata services
        "172.16.0.0/12",
        "192.0.0.0/24",  # protocol assignments, and a metadata service at 192.0.0.192
        "192.0.2.0/24",
        "192.31.196.0/24",
        "192.52.193.0/24",
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",
        "192.175.48.0/24",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
    )
)
_V6_GLOBAL = IPv6Network("2000::/3")
"""All that is assigned to the public net. Outside lie loopback, mapped and translated IPv4 (`::ffff:0:0/96`,
`64:ff9b::/96`), unique local, link-local and site-local addresses, multicast."""
_V6_REFUSED = tuple(
    IPv6Network(network)
    for network in (
        "2001::/23",  # protocol assignments: Teredo, ORCHID, benchmarks
        "2001:db8::/32",
        "2002::/16",  # 6to4
        "2620:4f:8000::/48",
        "3fff::/20",
    )
)


class AddressRule:
    """Decides on addresses. `allowed` are networks that the operator admits, public or not."""

    def __init__(self, allowed: Sequence[str] = ()) -> None:
        """Raises `ValueError` for what is no network."""
        self._allowed: tuple[Network, ...] = tuple(ip_network(text, strict=False) for text in allowed)

    def admits(self, text: str) -> bool:
        """Whether the address may be dialled. What is no address is not; nor is one with a zone, which only this
        machine understands."""
        try:
            address = ip_address(text)
        except ValueError:
            return False
        if isinstance(address, IPv6Address) and address.scope_id is not None:
            return False
        return any(address in network for network in self._allowed) or _is_public(address)


def _is_public(address: Address) -> bool:
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _V4_REFUSED)
    return address in _V6_GLOBAL and not any(address in network for network in _V6_REFUSED)
