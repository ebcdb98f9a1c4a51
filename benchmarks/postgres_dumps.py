"""`python -m benchmarks.postgres_dumps`: what a dump of PostgreSQL costs with its contents told, and a load with the
comparison, beside `pg_dump | zstd` and `pg_restore` of the same database; and what the tenant notices meanwhile."""

import argparse
import asyncio
import os
import platform
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import zstandard

from app.contracts.base import Engine
from app.core import ids
from app.engines.base import AdminAddress, EngineAdapter, EngineLimits, Tenant
from app.engines.dumping import CHUNK_BYTES, DumpFormat
from app.engines.registry import open_adapter
from app.engines.tls import PLAIN
from app.local.postgres import find_programs
from app.local.stack_file import StackHost
from benchmarks.cold_create import quantile
from benchmarks.stack import running_stack

_ROUNDS = 5
_ROWS = 2_600_000
"""Of about 400 bytes: a gigabyte."""
_BIG = f"""
CREATE TABLE big AS SELECT i, i % 1000 AS k, md5(i::text) || repeat(md5((i % 5000)::text), 10) AS t, now() AS at
FROM generate_series(1, {_ROWS}) i;
ALTER TABLE big ADD PRIMARY KEY (i);
CREATE INDEX ON big (k);
"""
_MANY = """
DO $$ BEGIN
    FOR n IN 1..1000 LOOP
        EXECUTE format('CREATE TABLE t%s (i int PRIMARY KEY, t text)', n);
        EXECUTE format('INSERT INTO t%s SELECT i, md5(i::text) FROM generate_series(1, 100) i', n);
        IF n % 100 = 0 THEN COMMIT; END IF;
    END LOOP;
END $$
"""
DATABASES = {"1 GB": _BIG, "1,000 tables": _MANY}
_LIMITS = EngineLimits(connections=10)


@dataclass
class Pairs:
    """Seconds of ours, and of the tool beside it, in turn."""

    ours: list[float] = field(default_factory=list)
    tool: list[float] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        return quantile([ours / tool for ours, tool in zip(self.ours, self.tool, strict=True)], 0.5)


class Measured:
    """A database of a tenant, full, with an empty one beside it."""

    def __init__(self, adapter: EngineAdapter, full: Tenant, empty: Tenant) -> None:
        self.adapter = adapter
        self.full = full
        self.empty = empty
        self._programs = find_programs(None)

    async def dump(self, folder: Path) -> tuple[float, DumpFormat]:
        """Our dump through zstd into a file, its contents told beside it."""
        began = time.monotonic()
        async with self.adapter.dumping(self.full) as dump:
            telling = asyncio.create_task(dump.contents())
            with (folder / "ours.zst").open("wb") as file:
                compressing = zstandard.ZstdCompressor(level=1).compressobj()
                async for chunk in dump.chunks():
                    file.write(await asyncio.to_thread(compressing.compress, chunk))
                file.write(compressing.flush())
            await telling
        return time.monotonic() - began, dump.format

    async def tool_dump(self, folder: Path) -> float:
        return await self._run(f"pg_dump -Fc -Z none {self.full.name} | zstd -q -1 -f -o {folder}/tool.zst", self.full)

    async def load(self, folder: Path, form: DumpFormat) -> tuple[float, float]:
        """Our load, and the comparison after it."""
        await self.adapter.clear(self.empty)
        began = time.monotonic()
        await self.adapter.load(self.empty, form, _chunks(folder / "ours.zst"))
        loaded = time.monotonic()
        await self.adapter.contents(self.empty)
        return loaded - began, time.monotonic() - loaded

    async def tool_load(self, folder: Path) -> float:
        await self.adapter.clear(self.empty)
        return await self._run(f"zstd -q -dc {folder}/tool.zst | pg_restore -O -x -d {self.empty.name}", self.empty)

    async def noticed(self, seconds: float) -> list[float]:
        """The times of a tenant's statements, one after the other."""
        address = self.adapter.address
        session = await asyncpg.connect(
            host=address.host,
            port=address.port,
            user=self.full.name,
            password=self.full.password,
            database=self.full.name,
        )
        taken, end = [], time.monotonic() + seconds
        while time.monotonic() < end:
            began = time.monotonic()
            await session.fetch("SELECT * FROM big WHERE i BETWEEN $1 AND $1 + 20", int(began * 1e6) % _ROWS)
            await session.execute("UPDATE big SET k = k + 1 WHERE i = $1", int(began * 1e6) % _ROWS)
            taken.append(time.monotonic() - began)
            await asyncio.sleep(0.005)
        await session.close()
        return taken

    async def _run(self, command: str, tenant: Tenant) -> float:
        address = self.adapter.address
        environ = {
            "PATH": f"{self._programs}:{os.environ['PATH']}",
            "PGHOST": address.host,
            "PGPORT": str(address.port),
            "PGUSER": tenant.name,
            "PGPASSWORD": tenant.password,
        }
        began = time.monotonic()
        process = await asyncio.create_subprocess_shell(command, env=environ)
        if await process.wait():
            raise RuntimeError(command)
        return time.monotonic() - began


async def compare_dumps(measured: Measured, folder: Path, rounds: int) -> tuple[Pairs, DumpFormat]:
    pairs = Pairs()
    for _ in range(rounds):
        pairs.tool.append(await measured.tool_dump(folder))
        seconds, form = await measured.dump(folder)
        pairs.ours.append(seconds)
    return pairs, form


async def compare_loads(measured: Measured, folder: Path, form: DumpFormat, rounds: int) -> tuple[Pairs, Pairs]:
    """Of the load, and of the load with the comparison, beside the load alone."""
    loads, proofs = Pairs(), Pairs()
    for _ in range(rounds):
        loads.tool.append(await measured.tool_load(folder))
        load, comparison = await measured.load(folder, form)
        loads.ours.append(load)
        proofs.ours.append(load + comparison)
        proofs.tool.append(load)
    return loads, proofs


async def compare_notice(measured: Measured, folder: Path, rounds: int) -> Pairs:
    """The 95th percentile of a tenant's statements while it is dumped, and while it isn't."""
    pairs = Pairs()
    for _ in range(rounds):
        pairs.tool.append(quantile(await measured.noticed(4), 0.95))
        dumping = asyncio.create_task(measured.dump(folder))
        pairs.ours.append(quantile(await measured.noticed(4), 0.95))
        await dumping
    return pairs


@asynccontextmanager
async def filled(adapter: EngineAdapter, written: str) -> AsyncIterator[Measured]:
    full, empty = [
        Tenant(name=ids.engine_name(), password=ids.engine_password(), marker=ids.marker(uuid.uuid4()))
        for _ in range(2)
    ]
    try:
        for tenant in (full, empty):
            await adapter.create(tenant, _LIMITS)
        session = await asyncpg.connect(
            host=adapter.address.host,
            port=adapter.address.port,
            user=full.name,
            password=full.password,
            database=full.name,
        )
        for statement in written.split(";\n") if "$$" not in written else [written]:
            if statement.strip():
                await session.execute(statement)
        await session.execute("VACUUM ANALYZE")
        await session.close()
        yield Measured(adapter, full, empty)
    finally:
        for tenant in (full, empty):
            await adapter.destroy(tenant)


async def _chunks(file: Path) -> AsyncIterator[bytes]:
    with file.open("rb") as packed, zstandard.ZstdDecompressor().stream_reader(packed) as reader:
        while chunk := await asyncio.to_thread(reader.read, CHUNK_BYTES):
            yield chunk


async def run(adapter: EngineAdapter, rounds: int, show: Callable[[str], Any] = print) -> None:
    """Everything, in lines of a table."""
    with tempfile.TemporaryDirectory(prefix="headwater-dumps-") as name:
        folder = Path(name)
        for what, written in DATABASES.items():
            async with filled(adapter, written) as measured:
                dumps, form = await compare_dumps(measured, folder, rounds)
                show(_row(f"dump of {what}, beside pg_dump and zstd", dumps, 1.3))
                loads, proofs = await compare_loads(measured, folder, form, max(1, rounds // 2))
                show(_row(f"load of {what}, beside pg_restore", loads, 1.2))
                show(_row(f"load and comparison of {what}, beside the load alone", proofs, 1.5))
                if "big" in written:
                    notice = await compare_notice(measured, folder, rounds)
                    show(_row("p95 of the tenant's statements, while dumped, beside not", notice, 1.3))


def _row(what: str, pairs: Pairs, target: float) -> str:
    ours, tool = quantile(pairs.ours, 0.5), quantile(pairs.tool, 0.5)
    return f"| {what} | {ours:.3f} s | {tool:.3f} s | {pairs.ratio:.2f} | {target} |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.postgres_dumps", description=__doc__)
    parser.add_argument("--rounds", type=int, default=_ROUNDS, help="pairs of each (default: %(default)s)")
    rounds = parser.parse_args().rounds
    with running_stack() as stack:
        [host, *_] = [host for host in stack.hosts if host.engine == "postgres"]
        asyncio.run(_on(host, rounds))


async def _on(host: StackHost, rounds: int) -> None:
    print(f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}\n")
    print("| what | ours | the tool | ratio | target |")
    print("|------|------|----------|-------|--------|")
    parts = urlsplit(host.admin_dsn)
    address = AdminAddress(
        host=host.host, port=host.port, user=parts.username or "", password=parts.password or "", tls=PLAIN
    )
    adapter = open_adapter(Engine(host.engine), address)
    try:
        await run(adapter, rounds)
    finally:
        await adapter.close()


if __name__ == "__main__":
    main()
