"""Processes of this version beside the tables of the next one, which have more columns."""

from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import count
from typing import Any

import asyncpg
import httpx
import pytest
import pytest_asyncio

from app.contracts.base import Engine
from tests.support.client import Caller
from tests.support.service import RunningService, SharedServers
from tests.support.store import owner_dsn

_TABLES = """
SELECT c.oid::regclass::text AS name FROM pg_class c
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
"""
_NUMBERS = count()
Request = Callable[[Caller, dict[str, Any]], Awaitable[httpx.Response]]
REQUESTS: dict[str, Request] = {
    "create": lambda caller, _: caller.post("/databases", {"name": "another", "db_type": Engine.POSTGRES}),
    "read": lambda caller, made: caller.get(f"/databases/{made['uuid']}"),
    "list": lambda caller, _: caller.get("/databases"),
    "search": lambda caller, _: caller.get("/databases", params={"name": "made"}),
    "change": lambda caller, made: caller.patch(f"/databases/{made['uuid']}", {"name": f"made-{next(_NUMBERS)}"}),
    "rotate": lambda caller, made: caller.post(f"/databases/{made['uuid']}/credential_rotations", {}),
    "user": lambda caller, made: caller.post(
        f"/databases/{made['uuid']}/users", {"name": f"user{next(_NUMBERS)}", "access": "read_only"}
    ),
    "backup": lambda caller, made: caller.post(f"/databases/{made['uuid']}/backups", {}),
    "operations": lambda caller, made: caller.get("/operations", params={"database_uuid": made["uuid"]}),
    "metrics": lambda caller, made: caller.get(f"/databases/{made['uuid']}/metrics"),
    "delete": lambda caller, made: caller.delete(f"/databases/{made['uuid']}"),
}


@pytest_asyncio.fixture(scope="module")
async def service(
    tmp_path_factory: pytest.TempPathFactory, shared_servers: SharedServers
) -> AsyncIterator[RunningService]:
    async with shared_servers.service(tmp_path_factory.mktemp("columns"), with_mysql=False) as running:
        yield running


async def test_no_request_fails_whose_statements_were_prepared_before(
    service: RunningService, shared_servers: SharedServers
) -> None:
    """Whichever is the first: outside a transaction the driver prepares anew, and so mends it for the rest."""
    caller = await service.caller()
    first, second = [await caller.created("made", db_type=Engine.POSTGRES) for _ in range(2)]
    owner = await asyncpg.connect(owner_dsn(service.control_dsn, shared_servers.control.admin_dsn))
    try:
        tables = [row["name"] for row in await owner.fetch(_TABLES)]
        for name, request in REQUESTS.items():
            before = await request(caller, first)
            assert before.is_success, (name, before.text)
            await _add_column(owner, tables, f"for_{name}")
            after = await request(caller, second)
            assert after.is_success, (name, after.text)
    finally:
        await owner.close()


async def _add_column(owner: asyncpg.Connection, tables: list[str], name: str) -> None:
    """To all of them, as a migration does: before the server looks for deadlocks it lets go, and tries again."""
    added = "; ".join(f"ALTER TABLE {table} ADD COLUMN {name} integer" for table in tables)
    while True:
        try:
            async with owner.transaction():
                await owner.execute("SET LOCAL lock_timeout = '300ms'")
                await owner.execute(f"LOCK TABLE {', '.join(tables)} IN ACCESS EXCLUSIVE MODE")
                await owner.execute(added)
        except asyncpg.LockNotAvailableError:
            continue
        return
