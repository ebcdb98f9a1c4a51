"""A name server on this machine, and a resolver that asks it: real queries over UDP, with answers that may change."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any

import dns.asyncresolver
import dns.exception
import dns.message
import dns.rdatatype
import dns.resolver
import dns.rrset

from app.local.ports import LOOPBACK
from tests.support.waiting import LIMIT_SECONDS


@dataclass
class NameServer(asyncio.DatagramProtocol):
    """`answers` maps a name to rounds of addresses: each look-up gets the next round, and the last one repeats."""

    answers: dict[str, list[list[str]]] = field(default_factory=dict)
    silent: set[str] = field(default_factory=set)
    """Names for which it sends no response."""
    unanswered: list[str] = field(default_factory=list)
    """Those of them that it was asked for."""
    asked: list[str] = field(default_factory=list)
    """The names of look-ups for IPv4 addresses."""
    patience: float = 20
    """The resolver's timeout in seconds for a silent name. Other names are answered, however late."""
    port: int = 0
    _transport: Any = None

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        query = dns.message.from_wire(data)
        (question,) = query.question
        name = question.name.to_text().rstrip(".")
        if name in self.silent:
            self.unanswered.append(name)
            return
        if question.rdtype == dns.rdatatype.A:
            self.asked.append(name)
        rounds = self.answers[name]
        # A resolver asks for IPv4 first, so a round ends with the query for IPv6.
        addresses = rounds[0]
        if question.rdtype == dns.rdatatype.AAAA and len(rounds) > 1:
            rounds.pop(0)
        version = 4 if question.rdtype == dns.rdatatype.A else 6
        fitting = [address for address in addresses if ip_address(address).version == version]
        response = dns.message.make_response(query)
        if fitting:
            response.answer.append(dns.rrset.from_text_list(question.name, 0, "IN", question.rdtype, fitting))
        self._transport.sendto(response.to_wire(), addr)

    def block(self, host: str) -> list[str]:
        """Like `resolve` for IPv4, but blocks the calling thread as the system's resolver does. Raises `OSError`."""
        resolver = dns.resolver.Resolver(configure=False)
        resolver.nameservers, resolver.port, resolver.lifetime = [LOOPBACK], self.port, self._patience_with(host)
        try:
            return [record.to_text() for record in resolver.resolve(host, "A")]
        except dns.exception.Timeout:
            raise OSError("no name server answers") from None

    async def resolve(self, host: str) -> list[str]:
        """Like a system's resolver: returns an address as it is, and queries both kinds for a name."""
        try:
            return [str(ip_address(host))]
        except ValueError:
            pass
        resolver = dns.asyncresolver.Resolver(configure=False)
        resolver.nameservers, resolver.port, resolver.lifetime = [LOOPBACK], self.port, self._patience_with(host)
        # It asks once: what it asked for is counted.
        resolver.timeout = resolver.lifetime
        found: list[str] = []
        for kind in ("A", "AAAA"):
            answer = await resolver.resolve(host, kind, raise_on_no_answer=False)
            found += [record.to_text() for record in answer.rrset or ()]
        return found

    def _patience_with(self, host: str) -> float:
        return self.patience if host in self.silent else LIMIT_SECONDS


@asynccontextmanager
async def name_server() -> AsyncIterator[NameServer]:
    loop = asyncio.get_running_loop()
    transport, server = await loop.create_datagram_endpoint(NameServer, local_addr=(LOOPBACK, 0))
    server.port = transport.get_extra_info("sockname")[1]
    try:
        yield server
    finally:
        transport.close()
