"""`python -m benchmarks.rotation`: what new credentials cost on a host, compared with the engine's own statement and a
first login with what it has set."""

import argparse
import asyncio
import os
import platform
import time
import uuid
from collections.abc import Awaitable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiomysql
import msgspec

from app.contracts.base import Engine
from app.core import ids
from app.engines.base import Access, AdminAddress, EngineAdapter, EngineLimits, Login, Tenant
from app.engines.registry import open_adapter
from app.engines.tls import PLAIN, TlsPolicy
from app.local.stack_file import StackHost
from benchmarks.cold_create import quantile
from benchmarks.driver import connect_and_run
from benchmarks.raw import Raw, raw_on
from benchmarks.stack import running_stack

_ROUNDS = 100
_WARM_UP = 5
_TARGET = 3.0
_LIMITS = EngineLimits(connections=10)


@dataclass
class Seconds:
    """For each round: the rotation up to the proof, the bare statement, a plain driver's first login with what it has
    set, the overlap's end."""

    rotation: list[float] = field(default_factory=list)
    statement: list[float] = field(default_factory=list)
    login: list[float] = field(default_factory=list)
    end: list[float] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        """What of a rotation is no login, beside the statement; of the medians."""
        rotation, statement, login = (quantile(side, 0.5) for side in (self.rotation, self.statement, self.login))
        return (rotation - login) / statement


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rotation", description=__doc__)
    parser.add_argument("--rounds", type=int, default=_ROUNDS, help="rotations on each engine (default: %(default)s)")
    rounds = parser.parse_args().rounds
    with running_stack() as stack:
        asyncio.run(_run(stack.hosts, rounds))


async def _run(hosts: list[StackHost], rounds: int) -> None:
    print(f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}")
    print(f"{rounds} rotations of one database on each host, in turn with the bare statement and a login; p50\n")
    print("| host | add and prove | bare statement | first login | (first - login) / statement | end of the overlap |")
    print("|------|---------------|----------------|-------------|-----------------------------|--------------------|")
    for host in hosts:
        seconds = await _measure(host, rounds)
        times = [
            f"{1000 * quantile(side, 0.5):.1f} ms" for side in (seconds.rotation, seconds.statement, seconds.login)
        ]
        end = f"{1000 * quantile(seconds.end, 0.5):.1f} ms"
        name = host.engine if host.engine == Engine.POSTGRES else str(host.flavour)
        print(f"| {name} | {' | '.join(times)} | {seconds.ratio:.2f} | {end} |")
    print(f"\nat most {_TARGET} is wanted")


async def _measure(host: StackHost, rounds: int) -> Seconds:
    parts = urlsplit(host.admin_dsn)
    address = AdminAddress(
        host=host.host, port=host.port, user=parts.username or "", password=parts.password or "", tls=await _tls(host)
    )
    adapter = open_adapter(Engine(host.engine), address)
    tenant, bare = _tenant(), _tenant()
    seconds = Seconds()
    try:
        async with raw_on(host) as raw:
            await adapter.create(tenant, _LIMITS)
            for statement in raw.statements(bare.name, bare.password):
                await raw.run(statement)
            for number in range(1, _WARM_UP + rounds + 1):
                if number == _WARM_UP + 1:
                    seconds = Seconds()
                bare = msgspec.structs.replace(bare, password=ids.engine_password())
                tenant = await _round(host, adapter, raw, (tenant, bare), number, seconds)
    finally:
        await adapter.destroy(tenant)
        await adapter.close()
    return seconds


async def _round(
    host: StackHost, adapter: EngineAdapter, raw: Raw, sides: tuple[Tenant, Tenant], number: int, seconds: Seconds
) -> Tenant:
    """A rotation of the first side, and a new password for the second; in every other round the second comes first,
    because a busy machine favours whoever has waited. Returns the first side as it is then."""
    tenant, bare = sides
    old = Login(name=tenant.login or tenant.name, password=tenant.password, access=Access.READ_WRITE, connections=None)
    name = f"{tenant.name}_l{number}" if adapter.rotation_renames else tenant.name
    new = Login(name=name, password=ids.engine_password(), access=Access.READ_WRITE, connections=None)
    if number % 2:
        seconds.rotation.append(await _timed(_add_and_prove(adapter, tenant, new)))
    seconds.statement.append(await _timed(raw.run(raw.new_password(bare.name, bare.password))))
    seconds.login.append(await connect_and_run(_as_answered(host, bare), "SELECT 1", adapter.address.tls.context))
    if not number % 2:
        seconds.rotation.append(await _timed(_add_and_prove(adapter, tenant, new)))
    seconds.end.append(await _timed(adapter.retire_credential(tenant, new, old, end_sessions=False)))
    return Tenant(
        name=tenant.name,
        marker=tenant.marker,
        password=new.password,
        login=new.name if adapter.rotation_renames else "",
    )


async def _add_and_prove(adapter: EngineAdapter, tenant: Tenant, new: Login) -> None:
    await adapter.add_credential(tenant, new)
    await adapter.log_in_as(tenant, new)


async def _tls(host: StackHost) -> TlsPolicy:
    """MySQL takes a new password over a verified connection only: by the CA that the server made for itself."""
    if host.flavour != "mysql":
        return PLAIN
    parts = urlsplit(host.admin_dsn)
    connection = await aiomysql.connect(host=host.host, port=host.port, user=parts.username, password=parts.password)
    async with connection.cursor() as cursor:
        await cursor.execute("SELECT @@datadir, @@ssl_ca")
        [(folder, name)] = await cursor.fetchall()
    connection.close()
    return TlsPolicy(ca=await asyncio.to_thread(Path(folder, name).read_text))


def _as_answered(host: StackHost, bare: Tenant) -> dict[str, Any]:
    """As the API shows a database."""
    return {
        "db_type": host.engine,
        "connection_string": f"postgresql://{bare.name}:{bare.password}@{host.host}:{host.port}/{bare.name}",
        "host": host.host,
        "port": host.port,
        "db_username": bare.name,
        "db_password": bare.password,
        "db_name": bare.name,
    }


async def _timed(work: Awaitable[None]) -> float:
    started = time.perf_counter()
    await work
    return time.perf_counter() - started


def _tenant() -> Tenant:
    return Tenant(name=ids.engine_name(), password=ids.engine_password(), marker=ids.marker(uuid.uuid4()))


if __name__ == "__main__":
    main()
