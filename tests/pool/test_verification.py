"""Members that stop working while they wait, on real servers."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from uuid import UUID

import asyncpg
import msgspec

from app.contracts.base import Engine
from app.databases.pool.verification import verify
from app.databases.pooled import unverified_members
from app.engines.base import EngineAdapter
from app.engines.registry import open_adapter
from app.hosts.adapters import Adapters, HostAccess
from app.store.session import fetch
from tests.pool.conftest import POOL_SIZE
from tests.support.lone_pool import LonePool
from tests.support.pools import full, ready
from tests.support.ports import free_port
from tests.support.service import REGION, RunningService
from tests.support.waiting import until


class OfHostsThatAreAway(Adapters):
    """Of addresses on which nobody listens."""

    async def of(self, access: HostAccess) -> EngineAdapter:
        adapter = await super().of(access)
        away = msgspec.structs.replace(adapter.address, port=free_port())
        return open_adapter(access.engine, away)


async def verify_all(service: RunningService) -> None:
    adapters = Adapters(service.box)
    try:
        await verify(service.box, adapters, REGION, datetime.now(UTC) + timedelta(hours=1))
    finally:
        await adapters.close()


async def names() -> dict[UUID, str]:
    rows = await fetch("SELECT uuid, engine_name FROM databases WHERE uuid = any($1)", await ready())
    return {row["uuid"]: row["engine_name"] for row in rows}


async def test_those_that_refuse_their_tenant_are_thrown_away(pooled: RunningService) -> None:
    whole, locked, dropped, *_ = await full(POOL_SIZE)
    known = await names()
    server = await asyncpg.connect(pooled.postgres.admin_dsn)
    try:
        await server.execute(f"ALTER ROLE {known[locked]} PASSWORD 'another'")
        await server.execute(f"DROP DATABASE {known[dropped]}")
    finally:
        await server.close()
    await verify_all(pooled)
    rows = await fetch("SELECT uuid, status FROM databases WHERE uuid = any($1)", [whole, locked, dropped])
    assert {row["uuid"]: row["status"] for row in rows} == {whole: "active", locked: "deleted", dropped: "deleted"}
    (tried,) = await fetch("SELECT verified_at > provisioned_at AS later FROM databases WHERE uuid = $1", whole)
    assert tried["later"]
    assert whole in await full(POOL_SIZE), "others came in their place"
    left = "SELECT 1 FROM databases WHERE uuid = any($1) AND destroyed_at IS NULL"
    await until(lambda: _none(left, [locked, dropped]))


async def test_one_that_finds_no_connection_is_kept(pooled: RunningService) -> None:
    """A host that is full for a moment says nothing of what is on it."""
    crowded, *_ = await full(POOL_SIZE)
    role = (await names())[crowded]
    server = await asyncpg.connect(pooled.postgres.admin_dsn)
    try:
        limit = await server.fetchval("SELECT rolconnlimit FROM pg_roles WHERE rolname = $1", role)
        await server.execute(f"ALTER ROLE {role} CONNECTION LIMIT 0")
        await verify_all(pooled)
        await server.execute(f"ALTER ROLE {role} CONNECTION LIMIT {limit}")
    finally:
        await server.close()
    assert crowded in await ready()


async def test_a_host_that_is_away_loses_none_of_them(pooled: RunningService) -> None:
    members = await full(POOL_SIZE)
    adapters = OfHostsThatAreAway(pooled.box)
    (host,) = await fetch("SELECT id FROM engine_hosts WHERE engine = $1", Engine.POSTGRES)
    try:
        await verify(pooled.box, adapters, REGION, datetime.now(UTC) + timedelta(hours=1))
    finally:
        await adapters.close()
    (row,) = await fetch("SELECT sick_until > now() AS sick FROM engine_hosts WHERE id = $1", host["id"])
    await fetch("UPDATE engine_hosts SET sick_until = NULL")
    assert row["sick"]
    assert set(members) <= set(await ready())


async def test_the_schedule_has_them_tried(pooled: RunningService) -> None:
    member, *_ = await full(POOL_SIZE)
    await fetch(
        "UPDATE databases SET provisioned_at = now() - interval '1 hour', verified_at = NULL WHERE uuid = $1", member
    )
    tried = "SELECT 1 FROM databases WHERE uuid = $1 AND verified_at IS NOT NULL"
    await until(lambda: fetch(tried, member))


@asynccontextmanager
async def without_room() -> AsyncIterator[None]:
    """For the block the host takes no more. Its time being over, it is placed on before its members are tried: with
    what is made there it would recover too, and the oldest members be too many."""
    (host,) = await fetch("SELECT id, capacity FROM engine_hosts WHERE engine = $1", Engine.POSTGRES)
    await fetch("UPDATE engine_hosts SET capacity = 1 WHERE id = $1", host["id"])
    try:
        yield
    finally:
        await fetch("UPDATE engine_hosts SET capacity = $2 WHERE id = $1", host["id"], host["capacity"])


async def test_those_of_a_host_that_failed_come_back_when_it_answers(pooled: RunningService) -> None:
    members = await full(POOL_SIZE)
    async with without_room():
        await fetch("UPDATE engine_hosts SET sick_until = now() + interval '2 s' WHERE engine = $1", Engine.POSTGRES)
        # The schedule has them tried, however fresh their last proof is.
        away = "SELECT 1 FROM engine_hosts WHERE sick_until IS NOT NULL AND engine = $1"
        await until(lambda: _none(away, Engine.POSTGRES))
    assert set(await full(POOL_SIZE)) == set(members), "none was made in their place"


async def _none(sql: str, *arguments: object) -> bool:
    return not await fetch(sql, *arguments)


async def test_a_host_with_many_holds_up_no_other(pool: LonePool) -> None:
    many, few = await pool.api.add_host(), await pool.api.add_host()
    await pool.add_members(5, many)
    [last] = await pool.add_members(1, few)
    found = await unverified_members(REGION, datetime.now(UTC) + timedelta(hours=1), 2)
    assert {one.host_id for one in found} == {many, few}
    assert last in {one.uuid for one in found}
