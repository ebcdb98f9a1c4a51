"""A network of machines on this one: each a network namespace on one bridge, with lines that can be cut.

Everything is named after the process that made it. What a process that died has left is removed by the next one. It
takes root, and the programs `ip`, `tc` and `nft`.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.support.waiting import is_running

_PREFIX = "hwn"
_NAME = re.compile(rf"{_PREFIX}(\d+)-")
_SUBNET = "10.211.77"
"""Inside namespaces only, but for the one address by which this process reaches them."""
_SLOW = "rate 64kbit burst 4kbit latency 2000ms"


def missing() -> str | None:
    """Why no network can be made here."""
    if os.geteuid() != 0:
        return "network namespaces take root"
    absent = [program for program in ("ip", "tc", "nft") if shutil.which(program) is None]
    return f"no {' and no '.join(absent)} here" if absent else None


@dataclass
class Machine:
    """A namespace with one address. Its line is up unless it was cut."""

    name: str
    address: str
    namespace: str

    def inside(self, *argv: str) -> tuple[str, ...]:
        """The command line that runs there, as the same process."""
        return ("ip", "netns", "exec", self.namespace, *argv)

    def cut(self) -> None:
        """Nothing comes in, and nothing goes out."""
        _run(*self.inside("ip", "link", "set", "eth0", "down"))

    def deafen(self) -> None:
        """What it sends arrives, and nothing reaches it."""
        rules = "table inet cut { chain in { type filter hook input priority 0; iifname eth0 drop; }; }"
        _run(*self.inside("nft", rules))

    def slow(self) -> None:
        """What it sends is delayed as on a line of 64 kbit/s."""
        _run(*self.inside("tc", "qdisc", "replace", "dev", "eth0", "root", "tbf", *_SLOW.split()))

    def heal(self) -> None:
        """Undoes all of that."""
        _run(*self.inside("ip", "link", "set", "eth0", "up"))
        subprocess.run(self.inside("nft", "delete", "table", "inet", "cut"), capture_output=True)
        subprocess.run(self.inside("tc", "qdisc", "del", "dev", "eth0", "root"), capture_output=True)


@dataclass
class Network:
    machines: dict[str, Machine] = field(default_factory=dict)

    def add(self, name: str) -> Machine:
        number = len(self.machines) + 2
        machine = Machine(name, f"{_SUBNET}.{number}", f"{_own()}-{name}")
        _run("ip", "netns", "add", machine.namespace)
        _join(machine.namespace, f"{_PREFIX}{os.getpid() % 10**6}v{number}", "eth0", machine.address)
        _run(*machine.inside("ip", "link", "set", "lo", "up"))
        self.machines[name] = machine
        return machine


@contextmanager
def network() -> Iterator[Network]:
    """An empty one, for the block."""
    _sweep()
    lan, own = f"{_own()}-lan", f"{_PREFIX}{os.getpid() % 10**6}v1"
    try:
        _run("ip", "netns", "add", lan)
        _run("ip", "-n", lan, "link", "add", "br0", "type", "bridge")
        _run("ip", "-n", lan, "link", "set", "br0", "up")
        _join(None, own, own, f"{_SUBNET}.1")
        yield Network()
    finally:
        _remove([name for name in _namespaces() if name.startswith(f"{_own()}-")])


def _join(namespace: str | None, outer: str, inner: str, address: str) -> None:
    """A line from the bridge to a namespace, or to where this process is."""
    lan = f"{_own()}-lan"
    temporary = f"{outer}i"
    _run("ip", "link", "add", temporary, "type", "veth", "peer", "name", f"{outer}o", "netns", lan)
    _run("ip", "-n", lan, "link", "set", f"{outer}o", "master", "br0", "up")
    if namespace is not None:
        _run("ip", "link", "set", temporary, "netns", namespace)
    at = ("-n", namespace) if namespace is not None else ()
    _run("ip", *at, "link", "set", temporary, "name", inner)
    _run("ip", *at, "address", "add", f"{address}/24", "dev", inner)
    _run("ip", *at, "link", "set", inner, "up")


def _own() -> str:
    return f"{_PREFIX}{os.getpid()}"


def _namespaces() -> list[str]:
    listed = subprocess.run(["ip", "netns", "list"], check=True, capture_output=True, text=True).stdout
    return [line.split()[0] for line in listed.splitlines() if _NAME.match(line)]


def _sweep() -> None:
    """Removes what processes that have ended left. A line goes with either of its ends."""
    left = [name for name in _namespaces() if (of := _NAME.match(name)) and not is_running(int(of[1]))]
    _remove(left)


def _remove(namespaces: list[str]) -> None:
    for name in namespaces:
        pids = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True).stdout.split()
        for pid in pids:
            subprocess.run(["kill", "-9", pid], capture_output=True)
        subprocess.run(["ip", "netns", "del", name], check=True, capture_output=True)


def _run(*argv: str) -> None:
    done = subprocess.run(argv, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(argv)}: {done.stderr}"
