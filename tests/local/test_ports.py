"""Ports: a taken one is never given, and none is given twice."""

import socket

from app.local.ports import LOOPBACK, PortAllocator, free_port, is_free


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
