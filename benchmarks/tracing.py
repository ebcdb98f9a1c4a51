"""`python -m benchmarks.tracing`: what it costs the API to record everything.

Two API processes on the same database, one of which sends spans of all requests to a collector that takes them. They
get the same requests in turn, a round each; compared is the processor time that each process spends.
"""

import argparse
import os
import platform
import statistics
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

import uvloop

from app.local.ports import LOOPBACK, free_port
from app.local.python_services import ApiService
from app.local.services import start
from app.store.session import fetch
from benchmarks.api_servers import Account, Servers, account, running_servers
from benchmarks.lean_http import LeanConnection

_ROUNDS = 9
_TURNS = 20
"""Of each side in a round, in turn."""
_TARGET = 0.02
_OFF, _ON = "off", "on"


class _Collector(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing."""


@dataclass(frozen=True)
class _Work:
    name: str
    requests: int
    """In a turn."""
    status: int
    make: Callable[[LeanConnection, Account], bytes]


def _get(path: str) -> Callable[[LeanConnection, Account], bytes]:
    return lambda to, caller: to.request("GET", f"/api/v1{path}", {"Authorization": f"Bearer {caller.api_key}"})


def _create(to: LeanConnection, caller: Account) -> bytes:
    headers = {
        "Authorization": f"Bearer {caller.api_key}",
        "Idempotency-Key": str(uuid.uuid4()),
        "Content-Type": "application/json",
    }
    return to.request("POST", "/api/v1/databases", headers, b'{"name": "benchmark", "db_type": "postgres"}')


_WORKS = (
    _Work("`GET /me`", 100, 200, _get("/me")),
    _Work("`GET /databases`, 25", 15, 200, _get("/databases")),
    _Work("`POST /databases`, accepted", 2, 202, _create),
)


async def _run(rounds: int) -> None:
    print(f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}\n")
    with _collector() as endpoint:
        os.environ.pop("OTEL_EXPORTER_OTLP_ENDPOINT", None)
        async with running_servers() as servers, AsyncExitStack() as stack:
            traced = await _traced_api(stack, servers, endpoint)
            sides = {_OFF: (servers.api, servers.api_pid), _ON: traced}
            await _add_room()
            print("| request | processor time, off | on | difference | ratio, median of rounds | lowest | highest |")
            print("|---|---|---|---|---|---|---|")
            for work in _WORKS:
                print(_line(work, await _measure(work, sides, rounds)), flush=True)
    print(f"\nAt most {1 + _TARGET} is wanted.")


async def _traced_api(stack: AsyncExitStack, servers: Servers, endpoint: str) -> tuple[str, int]:
    folder = Path(stack.enter_context(TemporaryDirectory(prefix="headwater-bench-")))
    port = free_port()
    environ = _environment(servers.api_pid)
    environ |= {"HEADWATER_API_PORT": str(port), "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint}
    service = ApiService("traced", port=port, log=folder / "api.log", environ=lambda: environ, host=LOOPBACK)
    process = await start(service)
    stack.push_async_callback(process.stop)
    return service.url, process.pid


def _environment(pid: int) -> dict[str, str]:
    variables = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    return dict(one.split("=", 1) for one in variables if one)


async def _measure(work: _Work, sides: dict[str, tuple[str, int]], rounds: int) -> dict[str, list[float]]:
    """Seconds of processor time for a request, of each round."""
    times: dict[str, list[float]] = {side: [] for side in sides}
    for number in range(rounds + 1):
        # A team of its own for each round: nobody reaches a limit.
        callers = {side: await account(uuid.uuid4().hex) for side in sides}
        spent = dict.fromkeys(sides, 0.0)
        for turn in range(_TURNS):
            for side in sorted(sides, reverse=bool(turn % 2)):
                url, pid = sides[side]
                spent[side] += _turn(work, url, pid, callers[side])
        if number > 0:  # the first round warms up
            for side in sides:
                times[side].append(spent[side] / _TURNS / work.requests)
    return times


def _turn(work: _Work, url: str, pid: int, caller: Account) -> float:
    parts = urlsplit(url)
    with LeanConnection(str(parts.hostname), parts.port or 80) as connection:
        before = _processor_seconds(pid)
        for _ in range(work.requests):
            status, body = connection.exchange(work.make(connection, caller))
            if status != work.status:
                raise RuntimeError(f"{status}: {body[:500]!r}")
        return _processor_seconds(pid) - before


def _processor_seconds(pid: int) -> float:
    """Of all threads, in the scheduler's nanoseconds: the usual ticks are 10 ms."""
    return sum(int(one.read_text().split()[0]) for one in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


async def _add_room() -> None:
    """A host, which nobody connects to."""
    await fetch(
        "INSERT INTO engine_hosts (engine, flavour, version, region, host, port, admin_sealed, capacity,"
        " connection_capacity) VALUES ('postgres', 'postgres', '18', 'us-east-1', 'db.example.com', 5432, '', 1000000,"
        " 10000000)"
    )


@contextmanager
def _collector() -> Iterator[str]:
    """Its address."""
    server = ThreadingHTTPServer((LOOPBACK, 0), _Collector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://{LOOPBACK}:{server.server_address[1]}"
    finally:
        server.shutdown()


def _line(work: _Work, times: dict[str, list[float]]) -> str:
    off, on = (1_000_000 * statistics.median(times[side]) for side in (_OFF, _ON))
    ratios = [mine / bare for mine, bare in zip(times[_ON], times[_OFF], strict=True)]
    return (
        f"| {work.name} | {off:.0f} µs | {on:.0f} µs | {on - off:.0f} µs | {statistics.median(ratios):.3f}"
        f" | {min(ratios):.3f} | {max(ratios):.3f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tracing", description=__doc__)
    parser.add_argument("--rounds", type=int, default=_ROUNDS, help="of each request (default: %(default)s)")
    uvloop.run(_run(parser.parse_args().rounds))


if __name__ == "__main__":
    main()
