"""`python -m benchmarks.backups`: taking and proving a backup of a PostgreSQL database through the API, compared with
`pg_dump | zstd` to a file and `pg_restore` of the same dump; and what its tenant feels meanwhile."""

import argparse
import asyncio
import contextlib
import os
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import httpx
import psutil

from app.backups.admission import admit_waiting
from app.backups.policies import BackupTerms
from app.backups.scheduling import enrol
from app.contracts.base import Engine
from app.core.settings import Settings
from app.engines.postgres.dumps.tools import DumpTools
from app.local.stack_file import StackFile, StackHost
from app.quotas.plans import DEFAULT_PLANS
from app.store.session import connected, execute, fetch_scalar
from benchmarks.cold_create import quantile
from benchmarks.stack import running_stack
from workers.backups import end_expired_backups, take_due_backups, test_due_backups

_ROW_BYTES = 1000
_MAJOR = 18
"""Of the embedded server."""
_RESTING = 500
_LOOKS = 300
"""A worker has one each second."""
_DATABASES = """
INSERT INTO databases (uuid, team_id, name, engine, region, plan, status, host_id, engine_name, connections)
SELECT gen_random_uuid(), (SELECT min(id) FROM teams), 'resting-' || n, 'postgres', 'nowhere', 'launch', 'active',
       (SELECT min(id) FROM engine_hosts), 'resting' || n, 1 FROM generate_series(1, $1::integer) n
"""
_TRANSACTIONS_SECONDS = 0.002
"""Between two of the tenant's transactions."""


@dataclass
class BackupSeconds:
    """For each round."""

    backup: list[float] = field(default_factory=list)
    dump: list[float] = field(default_factory=list)
    proof: list[float] = field(default_factory=list)
    """Load and comparison, as the proof says."""
    restore: list[float] = field(default_factory=list)
    alone: list[float] = field(default_factory=list)
    """The tenant's transactions while no backup runs."""
    meanwhile: list[float] = field(default_factory=list)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.backups", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="of each, in turn (default: %(default)s)")
    parser.add_argument("--megabytes", type=int, default=1000, help="of one table (default: %(default)s)")
    parser.add_argument("--tables", type=int, default=1000, help="small ones, in a second database")
    given = parser.parse_args()
    print(f"load average {os.getloadavg()[0]:.1f}, {os.cpu_count()} CPUs, {given.rounds} rounds in turn; p50\n")
    with running_stack() as stack, TemporaryDirectory() as folder:
        asyncio.run(_run(stack, Path(folder), given))
    print(f"\nload average {os.getloadavg()[0]:.1f}")


async def _run(stack: StackFile, folder: Path, given: argparse.Namespace) -> None:
    [host] = [one for one in stack.hosts if one.engine == Engine.POSTGRES]
    print("| | backup | pg_dump, zstd | ratio | proof | pg_restore | ratio | p95 alone | p95 meanwhile | ratio |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name, statements in (
        (f"{given.megabytes} MB", _large(given.megabytes)),
        (f"{given.tables} tables", _many(given.tables)),
    ):
        print(_row(name, await _measure(stack, host, folder, statements, given.rounds)), flush=True)
    print(f"\nat rest, {_RESTING} databases with a policy: {await _resting(stack):.2f} % of a core")


async def _resting(stack: StackFile) -> float:
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
        return 100 * (_spent(backend) - before) / _LOOKS


def _spent(backend: psutil.Process) -> float:
    times = backend.cpu_times()
    return time.process_time() + times.user + times.system


def _row(name: str, seconds: BackupSeconds) -> str:
    cells = [name]
    for mine, other in ((seconds.backup, seconds.dump), (seconds.proof, seconds.restore)):
        ratios = [one / beside for one, beside in zip(mine, other, strict=True)]
        cells += [f"{quantile(mine, 0.5):.2f} s", f"{quantile(other, 0.5):.2f} s", f"{quantile(ratios, 0.5):.2f}"]
    alone, meanwhile = quantile(seconds.alone, 0.95), quantile(seconds.meanwhile, 0.95)
    cells += [f"{1000 * alone:.1f} ms", f"{1000 * meanwhile:.1f} ms", f"{meanwhile / alone:.2f}"]
    return f"| {' | '.join(cells)} |"


def _large(megabytes: int) -> list[str]:
    rows = megabytes * 1_000_000 // _ROW_BYTES
    return [
        "CREATE TABLE large (id bigint PRIMARY KEY, text text)",
        # Compresses about as well as text of people does.
        f"INSERT INTO large SELECT n, string_agg(md5((n * 31 + m % 9)::text), ' ')"
        f" FROM generate_series(1, {rows}) n, generate_series(1, {_ROW_BYTES // 33}) m GROUP BY n",
    ]


def _many(tables: int) -> list[str]:
    made = f"FOR n IN 1..{tables} LOOP EXECUTE format('CREATE TABLE t%s (id serial PRIMARY KEY, text text)', n);"
    filled = "EXECUTE format('INSERT INTO t%s (text) SELECT md5(m::text) FROM generate_series(1, 20) m', n); END LOOP;"
    return [f"DO $$ BEGIN {made} {filled} END $$"]


async def _measure(
    stack: StackFile, host: StackHost, folder: Path, statements: list[str], rounds: int
) -> BackupSeconds:
    seconds = BackupSeconds()
    headers = {"Authorization": f"Bearer {stack.api_key}"}
    async with httpx.AsyncClient(base_url=f"{stack.api_url}/api/v1", headers=headers, timeout=200) as http:
        made = await _change(
            http, "POST", "/databases?wait=true", {"name": "benchmark", "db_type": "postgres", "plan": "pro"}
        )
        await _fill(made["connection_string"], statements)
        own = _of_database(host, made["db_name"])
        for _ in range(rounds):
            async with _transactions(made["connection_string"], seconds.meanwhile):
                began = time.perf_counter()
                backup = await _change(http, "POST", f"/databases/{made['uuid']}/backups?wait=true&timeout=120", {})
                seconds.backup.append(time.perf_counter() - began)
            if backup["status"] != "completed":
                raise RuntimeError(f"the backup is {backup['status']}: {backup['error']}")
            async with _transactions(made["connection_string"], seconds.alone):
                await asyncio.sleep(seconds.backup[-1])
            seconds.dump.append(await _shell(f"pg_dump -Fc -Z none '{own}' | zstd -1 -q -f -o {folder}/dump.zst; sync"))
            tested = await _change(http, "POST", f"/backups/{backup['uuid']}/restore_tests?wait=true&timeout=120")
            if tested["proof"]["status"] != "proven":
                raise RuntimeError(f"the proof is {tested['proof']}")
            seconds.proof.append(tested["proof"]["restore_seconds"])
            seconds.restore.append(await _restore(host, folder))
        await _change(http, "DELETE", f"/databases/{made['uuid']}")
    return seconds


async def _fill(connection_string: str, statements: list[str]) -> None:
    connection = await asyncpg.connect(connection_string)
    try:
        for statement in [
            *statements,
            "CREATE TABLE busy AS SELECT n AS id, 0 AS value FROM generate_series(1, 100) n",
        ]:
            await connection.execute(statement, timeout=1200)
        await connection.execute("VACUUM ANALYZE")
    finally:
        await connection.close()


async def _restore(host: StackHost, folder: Path) -> float:
    """Into a bare database of the administrator's."""
    admin = await asyncpg.connect(host.admin_dsn)
    try:
        await admin.execute("DROP DATABASE IF EXISTS bare")
        await admin.execute("CREATE DATABASE bare TEMPLATE template0")
    finally:
        await admin.close()
    bare = _of_database(host, "bare")
    return await _shell(f"zstd -dcq {folder}/dump.zst | pg_restore --no-owner --no-acl -d '{bare}'")


@asynccontextmanager
async def _transactions(connection_string: str, seconds: list[float]) -> AsyncIterator[None]:
    """The tenant's own, one after the other, while the block runs."""

    async def work() -> None:
        connection = await asyncpg.connect(connection_string)
        try:
            while True:
                began = time.perf_counter()
                await connection.execute("UPDATE busy SET value = value + 1 WHERE id = 7")
                seconds.append(time.perf_counter() - began)
                await asyncio.sleep(_TRANSACTIONS_SECONDS)
        finally:
            await connection.close()

    working = asyncio.create_task(work())
    try:
        yield
    finally:
        working.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await working


async def _shell(command: str) -> float:
    """Seconds that the command took, with the programs that the service finds for its dumps."""
    programs, _ = await DumpTools().folder(_MAJOR)
    environ = os.environ | {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    began = time.perf_counter()
    process = await asyncio.create_subprocess_shell(command, env=environ)
    if await process.wait() != 0:
        raise RuntimeError(f"{command} failed")
    return time.perf_counter() - began


def _of_database(host: StackHost, name: str) -> str:
    return urlunsplit(urlsplit(host.admin_dsn)._replace(path=f"/{name}"))


async def _change(http: httpx.AsyncClient, method: str, path: str, body: Any = None) -> Any:
    answer = await http.request(method, path, json=body, headers={"Idempotency-Key": str(uuid.uuid4())})
    if answer.status_code not in (200, 201):
        raise RuntimeError(f"{method} {path} was answered with {answer.status_code}: {answer.text}")
    return answer.json()["data"]


if __name__ == "__main__":
    main()
