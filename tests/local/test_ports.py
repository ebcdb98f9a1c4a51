"""Ports: a taken one is never given, and none is given twice."""

import os
import socket

import pytest

from app.local.ports import LOOPBACK, PortAllocator, free_port, is_free, is_taken_by_others


def test_a_port_in_use_is_not_free() -> None:
    with socket.create_server((LOOPBACK, 0)) as server:
        assert not is_free(server.getsockname()[1])


def test_a_free_port_is_free() -> None:
    assert is_free(free_port())


def test_the_preferred_port_is_given_when_it_is_free() -> None:
    port = free_port()
    assert PortAllocator().allocate(port) == port


def test_another_is_given_for_a_taken_one() -> None:
    with socket.create_server((LOOPBACK, 0)) as server:
        taken = server.getsockname()[1]
        port = PortAllocator().allocate(taken)
    assert port != taken
    assert is_free(port)


def test_no_port_is_given_twice() -> None:
    ports = PortAllocator()
    first = ports.allocate()
    assert ports.allocate(first) != first


@pytest.mark.parametrize(
    ("host", "listens"),
    [(LOOPBACK, LOOPBACK), (LOOPBACK, "0.0.0.0"), ("localhost", LOOPBACK), ("::1", "::1"), ("::1", "::")],
)
def test_a_server_takes_a_port_from_others(host: str, listens: str) -> None:
    with socket.create_server((listens, 0), family=_family(listens)) as server:
        port = server.getsockname()[1]
        assert is_taken_by_others(host, port, group=-1)
        assert not is_taken_by_others(host, port, group=os.getpgid(0))


@pytest.mark.parametrize(("host", "listens"), [(LOOPBACK, "127.0.0.2"), ("::1", LOOPBACK)])
def test_a_server_at_another_address_takes_no_port(host: str, listens: str) -> None:
    with socket.socket(_family(host)) as held, socket.socket(_family(listens)) as server:
        port = 0
        # What is free where everybody's servers are is free at the other address, too.
        for end, address in sorted(((held, host), (server, listens)), key=lambda one: one[1] != LOOPBACK):
            end.bind((address, port))
            port = end.getsockname()[1]
        server.listen()
        assert not is_taken_by_others(host, port, group=-1)


def _family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET
