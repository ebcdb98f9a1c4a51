"""`python -m benchmarks.backups`: backups of PostgreSQL databases through the API, beside what PostgreSQL's own tools
take for the same, in turn: dumps, loads, proofs, clones; and what a tenant feels of a backup."""

import argparse
import asyncio
import os
import platform
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil

from app.backups.admission import admit_waiting
from app.backups.policies import BackupTerms
from app.backups.scheduling import enrol
from app.contracts.base import Engine
from app.core.settings import Settings
from app.local.stack_file import StackFile
from app.quotas.plans import DEFAULT_PLANS
from app.store.session import connected, execute, fetch_scalar
from benchmarks.backup_tools import Client, Loads, Tools, shares_blocks
from benchmarks.cold_create import quantile
from benchmarks.stack import running_stack
from benchmarks.tenant_load import felt
from workers.backups import end_expired_backups, take_due_backups, test_due_backups

_ROW_BYTES = 1000
_RESTING = 500
_LOOKS = 300
"""A worker has one each second."""
_WINDOW_SECONDS = 6.0
"""Of the tenant's work, with and without backups."""
_DATABASES = """
INSERT INTO databases (uuid, team_id, name, engine, region, plan, status, host_id, engine_name, connections)
SELECT gen_random_uuid(), (SELECT min(id) FROM teams), 'resting-' || n, 'postgres', 'nowhere', 'launch', 'active',
       (SELECT min(id) FROM engine_hosts), 'resting' || n, 1 FROM generate_series(1, $1::integer) n
"""
PARTS = ("dumps", "loads", "tenant", "clone")


@dataclass
class Pairs:
    """Seconds of ours, and of what stands beside it in the same round."""

    what: str
    beside: str
    target: float
    ours: list[float] = field(default_factory=list)
    other: list[float] = field(default_factory=list)

    def add(self, ours: float, other: float) -> None:
        self.ours.append(ours)
        self.other.append(other)

    def row(self) -> str:
        ratios = [ours / other for ours, other in zip(self.ours, self.other, strict=True)]
        middle = f"{quantile(self.ours, 0.5):.4f} s | {self.beside} | {quantile(self.other, 0.5):.4f} s"
        spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
        return f"| {self.what} | {middle} | {quantile(ratios, 0.5):.2f} | {spread} | {self.target} |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.backups", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="of each, in turn (default: %(default)s)")
    parser.add_argument("--megabytes", type=int, default=1000, help="of one table; 0: none (default: %(default)s)")
    parser.add_argument("--tables", type=int, default=1000, help="in a second database; 0: none")
    parser.add_argument("--rows", type=int, default=100, help="of each of these tables (default: %(default)s)")
    parser.add_argument("--parts", nargs="*", default=PARTS, choices=PARTS, help="what is measured; loads with dumps")
    parser.add_argument("--resting", action="store_true", help="policies of databases at rest alone")
    given = parser.parse_args()
    print(f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}")
    print(f"load average {os.getloadavg()[0]:.1f}, {given.rounds} rounds in turn; p50\n")
    with TemporaryDirectory(prefix="headwater-bench-") as folder, running_stack(home=Path(folder) / "home") as stack:
        asyncio.run(_resting(stack) if given.resting else _run(stack, Path(folder), given))
    print(f"\nload average {os.getloadavg()[0]:.1f}")


async def _run(stack: StackFile, folder: Path, given: argparse.Namespace) -> None:
    [host] = [one for one in stack.hosts if one.engine == Engine.POSTGRES]
    tools = Tools(host, folder)
    print("| ours | p50 | beside | p50 | ratio | of single rounds | at most |")
    print("|------|-----|--------|-----|-------|------------------|---------|")
    sizes = ((given.megabytes, f"{given.megabytes} MB", _large), (given.tables, f"{given.tables} tables", _many))
    async with Client(stack) as client, Loads.opened(host, folder / "home") as loads:
        for size, name, statements in sizes:
            if not size:
                continue
            made = await client.make(statements(size, given.rows))
            if "dumps" in given.parts or "loads" in given.parts:
                loading = "loads" in given.parts
                _show(await _transfers(client, tools, loads, made, name, given.rounds, loading=loading))
            if "tenant" in given.parts:
                _show(await _felt(client, tools, made, name, given.rounds))
            if "clone" in given.parts and name.endswith("MB"):
                _show([await _clones(client, tools, folder, made, name, given.rounds)])
            await client.delete(made)


def _show(measured: Sequence[Pairs]) -> None:
    for one in measured:
        print(one.row(), flush=True)


async def _transfers(
    client: Client, tools: Tools, loads: Loads, made: dict[str, Any], name: str, rounds: int, *, loading: bool
) -> list[Pairs]:
    backups = Pairs(f"backup of {name}", "`pg_dump`, `zstd -1`", 1.3)
    restores = Pairs(f"load of {name} from the store", "`zstd`, `pg_restore`", 1.2)
    proofs = Pairs(f"proof of {name}", "that load alone", 1.5)
    for _ in range(rounds):
        await tools.settle(made["db_name"])
        dump = await tools.dump(made["db_name"])
        await tools.settle(made["db_name"])
        began = time.perf_counter()
        backup = await client.back_up(made)
        backups.add(time.perf_counter() - began, dump)
        if not loading:
            continue
        await tools.settle(made["db_name"])
        restore = await tools.restore()
        await tools.settle(made["db_name"])
        load = await loads.load(backup["uuid"])
        restores.add(load, restore)
        await tools.settle(made["db_name"])
        proofs.add(await client.prove(backup), load)
    return [backups, restores, proofs] if loading else [backups]


async def _felt(client: Client, tools: Tools, made: dict[str, Any], name: str, rounds: int) -> list[Pairs]:
    """One backup after the other, or one dump, for as long as the tenant's work is measured."""
    ours = f"p95 of its tenant while {name} are backed up"
    alone, dumped = Pairs(ours, "p95 without", 1.3), Pairs(ours, "p95 while `pg_dump`, `zstd -1` run", 1.3)

    async def p95(work: Callable[[], Awaitable[object]] | None = None) -> float:
        await tools.settle(made["db_name"])
        tenant = asyncio.create_task(felt(made["connection_string"], _WINDOW_SECONDS))
        while work is not None and not tenant.done():
            await work()
        return quantile(await tenant, 0.95)

    # What was just made is still being written.
    await p95()
    for _ in range(rounds):
        without, dumping = await p95(), await p95(lambda: tools.dump(made["db_name"]))
        meanwhile = await p95(lambda: client.back_up(made))
        alone.add(meanwhile, without)
        dumped.add(meanwhile, dumping)
    return [alone, dumped]


async def _clones(client: Client, tools: Tools, folder: Path, made: dict[str, Any], name: str, rounds: int) -> Pairs:
    """Beside a second, where blocks are shared; else beside the tools."""
    shared = await shares_blocks(folder)
    beside = "a second: the file system shares blocks" if shared else "both tools: the file system shares no blocks"
    pairs = Pairs(f"clone of {name}", beside, 1.0 if shared else 2.5)
    for _ in range(rounds):
        other = 1.0 if shared else await tools.dump(made["db_name"]) + await tools.restore()
        await tools.settle(made["db_name"])
        began = time.perf_counter()
        clone = await client.clone(made)
        pairs.add(time.perf_counter() - began, other)
        await client.delete(clone)
    return pairs


def _large(megabytes: int, _: int) -> list[str]:
    rows = megabytes * 1_000_000 // _ROW_BYTES
    # Compresses about as well as text of people does.
    words = ", ".join(f"md5((n * 31 + {number})::text)" for number in range(9))
    return [
        "CREATE TABLE large (id bigint PRIMARY KEY, text text)",
        f"INSERT INTO large SELECT n, left(repeat(concat_ws(' ', {words}), 4), {_ROW_BYTES - 20})"
        f" FROM generate_series(1, {rows}) n",
    ]


def _many(tables: int, rows: int) -> list[str]:
    made = f"FOR n IN 1..{tables} LOOP EXECUTE format('CREATE TABLE t%s (id serial PRIMARY KEY, text text)', n);"
    text = f"SELECT md5((n * {rows} + m)::text) FROM generate_series(1, {rows}) m"
    filled = f"EXECUTE format('INSERT INTO t%s (text) {text.replace('(n *', '(%s *')}', n, n); END LOOP;"
    return [f"DO $$ BEGIN {made} {filled} END $$"]


async def _resting(stack: StackFile) -> None:
    """The processor time of what a worker does each second for policies of which none is due, here and in our own
    database, in percent of a core."""
    settings = Settings()
    terms = BackupTerms.of(DEFAULT_PLANS, settings)
    async with connected(stack.control_admin_dsn, max_size=1):
        await execute(_DATABASES, _RESTING)
        await enrol(terms)
        await execute("ANALYZE databases, backups, backup_policies")
        backend = psutil.Process(await fetch_scalar(int, "SELECT pg_backend_pid()"))
        before = _spent(backend)
        for look in range(_LOOKS):
            if look % 30 == 0:
                await enrol(terms)
                await end_expired_backups(terms)
            await take_due_backups(terms)
            await admit_waiting(terms.limits)
            await test_due_backups(terms)
        percent = 100 * (_spent(backend) - before) / _LOOKS
    print(f"at rest, {_RESTING} databases with a policy: {percent:.2f} % of a core, at most 1 %")


def _spent(backend: psutil.Process) -> float:
    times = backend.cpu_times()
    return time.process_time() + times.user + times.system


if __name__ == "__main__":
    main()
