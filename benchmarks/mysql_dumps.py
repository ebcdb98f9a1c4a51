"""`python -m benchmarks.mysql_dumps`: what a dump of many small tables costs with its contents told, beside the dump tool
of MySQL or MariaDB alone."""

import argparse
import asyncio
import os
import time
import uuid
from urllib.parse import urlsplit

from app.contracts.base import Engine
from app.core import ids
from app.engines.base import AdminAddress, EngineAdapter, EngineLimits, Tenant
from app.engines.mysql.adapter import MySQLAdapter
from app.engines.mysql.dumps.dump import FLAGS
from app.engines.mysql.dumps.tools import find_tool
from app.engines.tls import PLAIN
from app.local.stack_file import StackHost
from benchmarks.cold_create import quantile
from benchmarks.stack import running_stack

_ROWS = 20


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mysql_dumps", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="of each, in turn (default: %(default)s)")
    parser.add_argument("--tables", type=int, default=1000, help="(default: %(default)s)")
    given = parser.parse_args()
    with running_stack() as stack:
        [host] = [one for one in stack.hosts if one.engine == Engine.MYSQL]
        asyncio.run(_measure(host, given.tables, given.rounds))


async def _measure(host: StackHost, tables: int, rounds: int) -> None:
    parts = urlsplit(host.admin_dsn)
    address = AdminAddress(
        host=host.host, port=host.port, user=parts.username or "", password=parts.password or "", tls=PLAIN
    )
    adapter = MySQLAdapter(address)
    tenant = Tenant(name=ids.engine_name(), password=ids.engine_password(), marker=ids.marker(uuid.uuid4()))
    await adapter.create(tenant, EngineLimits(connections=10))
    try:
        await _fill(adapter, tenant, tables)
        ours, tools = [], []
        for _ in range(rounds):
            tools.append(await _tool_dump(adapter, tenant))
            ours.append(await _dump(adapter, tenant))
        ratio = quantile([one / tool for one, tool in zip(ours, tools, strict=True)], 0.5)
        print(f"| {tables} tables | ours | the tool | ratio |\n|---|---|---|---|")
        print(f"| {host.engine} | {quantile(ours, 0.5):.2f} s | {quantile(tools, 0.5):.2f} s | {ratio:.2f} |")
    finally:
        await adapter.destroy(tenant)
        await adapter.close()


async def _fill(adapter: EngineAdapter, tenant: Tenant, tables: int) -> None:
    rows = ", ".join(f"({number}, MD5({number}))" for number in range(_ROWS))
    async with adapter._tenant(tenant) as session:  # type: ignore[attr-defined]
        for number in range(tables):
            await session.run(f"CREATE TABLE t{number} (id INT PRIMARY KEY, text VARCHAR(50), KEY (text))")
            await session.run(f"INSERT INTO t{number} VALUES {rows}")  # noqa: S608 - numbers


async def _dump(adapter: EngineAdapter, tenant: Tenant) -> float:
    began = time.monotonic()
    async with adapter.dumping(tenant) as dump:
        async for _ in dump.chunks():
            pass
        await dump.contents()
    return time.monotonic() - began


async def _tool_dump(adapter: MySQLAdapter, tenant: Tenant) -> float:
    async with adapter._connections.admin() as connection:
        flavour, version = connection.flavour, connection.get_server_info()
    tool = await find_tool(flavour, version)
    address = adapter.address
    began = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        tool.path,
        "--no-defaults",
        f"--host={address.host}",
        f"--port={address.port}",
        "--protocol=TCP",
        f"--user={tenant.name}",
        *FLAGS,
        *flavour.dump_flags,
        tenant.name,
        stdout=asyncio.subprocess.DEVNULL,
        env={**os.environ, "MYSQL_PWD": tenant.password},
    )
    if await process.wait():
        raise RuntimeError(f"{tool.name} failed")
    return time.monotonic() - began


if __name__ == "__main__":
    main()
