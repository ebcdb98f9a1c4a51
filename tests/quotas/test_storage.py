"""A database at its storage limit on the whole service: warned, frozen, thawed, paused when it grows all the same."""

from typing import Any
from uuid import UUID

import asyncpg
import pytest

from tests.e2e.chaos import ENGINES
from tests.quotas.conftest import Operator
from tests.quotas.tenant_session import refused, session_of
from tests.support.answers import data_of
from tests.support.client import Caller
from tests.support.store import database_dsn

LIMIT_GB = 16 / 1024
FILLING_MB = 20


@pytest.mark.parametrize("engine", ENGINES)
async def test_over_its_limit_it_is_frozen_and_freeing_space_thaws_it(
    operator: Operator, caller: Caller, engine: str
) -> None:
    made = await caller.created(db_type=engine, storage_hard_limit_gb=LIMIT_GB, warning_threshold_pct=50)
    async with session_of(made) as session:
        await session.run("CREATE TABLE small (n int)")
        await session.load(FILLING_MB)
    frozen = await operator.until_enforced(made, lambda record: record.frozen_at)
    assert frozen.status == "active"
    assert await refused(made, "INSERT INTO small VALUES (1)")
    assert await refused(made, "CREATE TABLE more (n int)")
    await operator.enforce()
    async with session_of(made) as session:
        assert await session.value("SELECT count(*) FROM loaded") > 0
        await session.run("DELETE FROM small")
        await session.run("TRUNCATE TABLE loaded")
        await session.run("DROP TABLE loaded")
    await operator.until_enforced(made, lambda record: record.frozen_at is None)
    assert not await refused(made, "INSERT INTO small VALUES (1)", "CREATE TABLE more (n int)")
    assert (await operator.events(made)).count("database.quota_warning") == 1
    details = await operator.inspect(made)
    assert 0 < details["storage_bytes"] < LIMIT_GB * 2**30


@pytest.mark.parametrize("engine", ENGINES)
async def test_what_was_deleted_is_given_back_by_the_service(operator: Operator, caller: Caller, engine: str) -> None:
    """A DELETE leaves the file as long as it was, and on MySQL a frozen tenant may not rebuild it."""
    made = await caller.created(db_type=engine, storage_hard_limit_gb=LIMIT_GB)
    async with session_of(made) as session:
        await session.load(FILLING_MB)
    await operator.until_enforced(made, lambda record: record.frozen_at)
    async with session_of(made) as session:
        # PostgreSQL is to notice what lies between rows that stay too; InnoDB tells of whole extents alone.
        await session.run("DELETE FROM loaded" + (" WHERE right(t, 1) <> 'a'" if engine == "postgres" else ""))
    await operator.until_enforced(made, lambda record: record.frozen_at is None)


async def test_what_autovacuum_has_been_over_is_given_back_too(operator: Operator, caller: Caller) -> None:
    """It leaves no dead rows to count, and the file as long as it was."""
    made = await caller.created(storage_hard_limit_gb=LIMIT_GB)
    async with session_of(made) as session:
        await session.load(FILLING_MB)
    await operator.until_enforced(made, lambda record: record.frozen_at)
    async with operator.service.frozen("worker"):  # or it gives the room back before
        async with session_of(made) as session:
            await session.run("DELETE FROM loaded WHERE right(t, 1) <> 'a'")
        # In a session of its own: the other one's count of dead rows has arrived.
        async with session_of(made) as session:
            await session.run("VACUUM ANALYZE loaded")
            assert await session.value("SELECT pg_table_size('loaded')") > LIMIT_GB * 2**30
    await operator.until_enforced(made, lambda record: record.frozen_at is None)


@pytest.mark.parametrize("engine", ENGINES)
async def test_who_holds_its_tables_keeps_nobody_else_frozen(operator: Operator, caller: Caller, engine: str) -> None:
    holder, other = [await caller.created(db_type=engine, storage_hard_limit_gb=LIMIT_GB) for _ in range(2)]
    for made in (holder, other):
        async with session_of(made) as session:
            await session.load(FILLING_MB)
        await operator.until_enforced(made, lambda record: record.frozen_at)
    deletes = "DELETE FROM loaded" + (" WHERE right(t, 1) <> 'a'" if engine == "postgres" else "")
    async with session_of(holder) as holding:
        # Before any run: it holds its table from the transaction of the deletion on.
        for statement in ("BEGIN", deletes):
            await holding.run(statement)
        # A session that ends tells PostgreSQL of its dead rows at once, an idle one after ten seconds.
        async with session_of(other) as session:
            await session.run(deletes)
        await operator.until_enforced(other, lambda record: record.frozen_at is None)
        assert await operator.settled(holder, lambda record: record.frozen_at is not None)
        await holding.run("COMMIT")
    await operator.until_enforced(holder, lambda record: record.frozen_at is None)


async def test_what_grows_although_it_is_frozen_is_paused_until_there_is_room(
    operator: Operator, caller: Caller
) -> None:
    made = await caller.created(storage_hard_limit_gb=LIMIT_GB)
    async with session_of(made) as session:
        await session.load(FILLING_MB)
    await operator.until_enforced(made, lambda record: record.frozen_at)
    await operator.enforce()
    await _grow_behind_its_back(operator, made)
    paused = await operator.until_enforced(made, lambda record: record.status == "paused")
    assert paused.paused_reason == "storage"
    assert await refused(made)
    await operator.enforce()
    assert (await operator.inspect(made))["status"] == "paused"
    data_of(await caller.patch(f"/databases/{made['uuid']}/quotas", {"storage_hard_limit_gb": 1}))
    await operator.until_enforced(made, lambda record: record.status == "active" and record.frozen_at is None)
    assert not await refused(made, "CREATE TABLE more (n int)")
    assert (await operator.events(made))[-2:] == ["database.paused", "database.resumed"]


async def test_an_operators_pause_is_not_lifted_by_upkeep(operator: Operator, caller: Caller) -> None:
    made = await caller.created()
    await operator.pause(made)
    for _ in range(2):
        await operator.enforce()
    details = await operator.inspect(made)
    assert (details["status"], details["paused_reason"]) == ("paused", "operator")
    await operator.resume(made)


async def test_a_frozen_database_that_was_paused_comes_back_frozen(operator: Operator, caller: Caller) -> None:
    made = await caller.created(storage_hard_limit_gb=LIMIT_GB)
    async with session_of(made) as session:
        await session.load(FILLING_MB)
    await operator.until_enforced(made, lambda record: record.frozen_at)
    await operator.pause(made)
    await operator.resume(made)
    assert not await refused(made, "SELECT count(*) FROM loaded")
    assert await refused(made, "INSERT INTO loaded VALUES ('x')")
    data_of(await caller.delete(f"/databases/{made['uuid']}"))


async def _grow_behind_its_back(operator: Operator, made: dict[str, Any]) -> None:
    """As its full administrator: nothing that a tenant knows of does it."""
    uuid = UUID(made["uuid"])
    name = (await operator.sql("SELECT engine_name FROM databases WHERE uuid = $1", uuid))[0]["engine_name"]
    root = await asyncpg.connect(database_dsn(operator.service.postgres.admin_dsn, name))
    await root.execute("INSERT INTO loaded SELECT repeat(md5(random()::text), 1000) FROM generate_series(1, 5000)")
    await root.execute("INSERT INTO loaded SELECT md5(random()::text) FROM generate_series(1, 300000)")
    await root.close()
