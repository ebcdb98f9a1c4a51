"""The SELECT-only account over its life: made at the first question, mended when something of it is gone, forgotten
with its database."""

import asyncio
from uuid import UUID

import pytest

from activities.control import ControlActivitiesOnStore
from app.core.ids import engine_password
from app.engines.querying import READER_SESSIONS
from app.quotas.plans import DEFAULT_PLANS
from app.store.session import fetch
from tests.e2e.hosts import postgres
from tests.queries.conftest import Asked, database_of
from tests.queries.test_disconnects import sessions
from tests.queries.test_previews import run, shown
from tests.support.answers import body_of, data_of, error_of
from tests.support.in_process import LoneApi
from tests.support.model_server import sql
from tests.support.service import RunningService
from tests.support.store import store
from tests.support.waiting import until

COUNT = sql("SELECT count(*) AS n FROM customers")


async def answered(asked: Asked) -> None:
    assert body_of(await asked.ask(COUNT))["result"]["rows"] == [{"n": 2}]


async def as_superuser(service: RunningService, *statements: str) -> None:
    async with postgres(service.postgres.admin_dsn) as connection:
        for statement in statements:
            await connection.execute(statement)


async def test_it_is_made_at_the_first_question_and_sealed(service: RunningService) -> None:
    asked = await database_of(service, "postgres")
    reader = f"{asked.database['db_name']}_ro"
    async with postgres(service.postgres.admin_dsn) as connection:
        assert not await connection.fetchval("SELECT 1 FROM pg_roles WHERE rolname = $1", reader)
        await asyncio.gather(*(answered(asked) for _ in range(6)))
        row = await connection.fetchrow("SELECT * FROM pg_roles WHERE rolname = $1", reader)
    assert row["rolcanlogin"]
    assert not any(row[right] for right in ("rolsuper", "rolcreatedb", "rolcreaterole", "rolbypassrls"))
    async with store(service.control_dsn):
        [kept] = await fetch(
            "SELECT r.* FROM query_readers r JOIN databases d ON d.id = r.database_id WHERE d.uuid = $1",
            UUID(asked.database["uuid"]),
        )
    assert len(kept["password_sealed"]) > 32 + 12


async def test_what_the_tenant_takes_from_it_is_given_back(service: RunningService) -> None:
    asked = await database_of(service, "postgres")
    await answered(asked)
    reader = f'"{asked.database["db_name"]}_ro"'
    await asked.run(f"REVOKE SELECT ON ALL TABLES IN SCHEMA public FROM {reader}")
    await answered(asked)
    await asked.run(
        f"ALTER DEFAULT PRIVILEGES REVOKE SELECT ON TABLES FROM {reader}",
        "CREATE TABLE later (n int)",
    )
    assert body_of(await asked.ask(sql("SELECT n FROM later")))["result"]["rows"] == []


async def test_questions_that_lack_a_right_at_once(service: RunningService, on_postgres: Asked) -> None:
    """All that have a place at the same time: none keeps it while it asks for another."""
    denied = (
        "CREATE FUNCTION denied() RETURNS int LANGUAGE plpgsql AS $$ BEGIN"
        " WHILE NOT pg_try_advisory_lock_shared(7) LOOP PERFORM pg_sleep(0.02); END LOOP;"
        " RAISE insufficient_privilege; END $$"
    )
    await on_postgres.run(denied, "CREATE VIEW denying AS SELECT denied() AS n")
    text = "SELECT n FROM denying"
    previews = [await shown(on_postgres, sql(text)) for _ in range(READER_SESSIONS - 1)]
    async with postgres(on_postgres.database["connection_string"]) as holder:
        await holder.execute("SELECT pg_advisory_lock(7)")
        running = [asyncio.create_task(run(on_postgres, preview["query_id"])) for preview in previews]

        async def all_in_it() -> bool:
            return await sessions(service, on_postgres, text) == len(running)

        await until(all_in_it)
    for answer in await asyncio.gather(*running):
        assert error_of(answer, 500, "query_execution_failed")["details"]["engine_code"] == "42501"
    await on_postgres.run("DROP VIEW denying", "DROP FUNCTION denied")


async def test_an_account_that_is_gone_is_made_again(service: RunningService) -> None:
    asked = await database_of(service, "postgres")
    await answered(asked)
    await as_superuser(service, f"ALTER ROLE \"{asked.database['db_name']}_ro\" PASSWORD 'another'")
    assert body_of(await asked.ask_once(COUNT))["result"]["rows"] == [{"n": 2}]


async def test_a_database_whose_places_are_taken(service: RunningService) -> None:
    asked = await database_of(service, "postgres")
    await answered(asked)
    await as_superuser(service, f'ALTER ROLE "{asked.database["db_name"]}_ro" CONNECTION LIMIT 0')
    answer = await asked.ask(COUNT)
    error_of(answer, 503, "database_unreachable")
    assert int(answer.headers["Retry-After"]) > 0


async def test_many_questions_at_once_share_the_places(service: RunningService, asked: Asked) -> None:
    answers = await asyncio.gather(*(asked.ask({**COUNT, "delay": 0.3}) for _ in range(20)))
    assert [body_of(answer)["result"]["rows"] for answer in answers] == [[{"n": 2}]] * 20


async def test_its_password_is_forgotten_with_the_database(lone: LoneApi) -> None:
    uuid = UUID(data_of(await (await lone.caller()).create(), 202)["uuid"])
    await fetch(
        "INSERT INTO query_readers (database_id, password_sealed) SELECT id, $2 FROM databases WHERE uuid = $1",
        uuid,
        engine_password().encode(),
    )
    await ControlActivitiesOnStore(DEFAULT_PLANS).record_destroyed(uuid)
    assert await fetch("SELECT 1 FROM query_readers"), "it isn't deleted"
    await fetch("UPDATE databases SET status = 'deleted' WHERE uuid = $1", uuid)
    await ControlActivitiesOnStore(DEFAULT_PLANS).record_destroyed(uuid)
    assert not await fetch("SELECT 1 FROM query_readers")


@pytest.mark.parametrize("engine", ["postgres", "mysql"])
async def test_it_reads_again_after_an_undeletion(service: RunningService, engine: str) -> None:
    asked = await database_of(service, engine)
    await answered(asked)
    path = f"/databases/{asked.database['uuid']}"
    body_of(await asked.caller.delete(path))
    error_of(await asked.ask(COUNT), 404, "not_found")
    body_of(await asked.caller.post(f"{path}/undeletions", None))
    assert body_of(await asked.ask_once(COUNT))["result"]["rows"] == [{"n": 2}]
