"""Blueprints and their applications, as a client asks for them, and what they leave on the engine."""

import re
from typing import Any

from app.contracts.base import Engine
from tests.e2e.hosts import mysql, postgres
from tests.support.answers import data_of
from tests.support.client import Caller
from tests.support.service import RunningService
from tests.support.waiting import until

ENGINES = tuple(engine.value for engine in Engine)
GATED = {
    "postgres": "CREATE TABLE a (id integer);\n"
    "DO $$ BEGIN WHILE EXISTS (SELECT FROM gate) LOOP PERFORM pg_sleep(0.05); END LOOP; END $$;\n"
    "CREATE TABLE b (id integer);\n",
    "mysql": "CREATE TABLE a (id integer);\nCALL waits();\nCREATE TABLE b (id integer);\n",
}
"""Scripts whose second statement ends when the database's gate is opened; on a copy, which has no rows, at once."""
_SHUT_GATE = {
    "postgres": ("CREATE TABLE gate (n integer)", "INSERT INTO gate VALUES (1)"),
    "mysql": (
        "CREATE TABLE gate (n integer)",
        "INSERT INTO gate VALUES (1)",
        "CREATE PROCEDURE waits() BEGIN WHILE EXISTS (SELECT * FROM gate) DO DO SLEEP(0.05); END WHILE; END",
    ),
}
TWO_TABLES = "CREATE TABLE a (id integer PRIMARY KEY);\nCREATE TABLE b (id integer PRIMARY KEY);\n"


async def saved(caller: Caller, sql: str, **fields: Any) -> str:
    """The uuid of a blueprint with that SQL."""
    answer = await caller.post("/blueprints", {"name": "test", "sql_content": sql, **fields})
    uuid: str = data_of(answer, 201)["uuid"]
    return uuid


async def ask(caller: Caller, database: Any, sql: str, *, definitions: Any = None, **fields: Any) -> Any:
    """The application of a blueprint with that SQL, as the answer shows it. `definitions` are of its variables."""
    blueprint = await saved(caller, sql, variables=definitions)
    answer = await caller.post(
        f"/databases/{database['uuid']}/blueprint_applications", {"blueprint_uuid": blueprint, "timeout": 90, **fields}
    )
    assert answer.status_code in (200, 202), answer.text
    return answer.json()["data"]


async def applied(caller: Caller, database: Any, sql: str, **fields: Any) -> Any:
    """The same, ended."""
    application = await ask(caller, database, sql, **fields)
    assert application["completed_at"], application
    return application


async def seen(caller: Caller, application: Any) -> Any:
    return data_of(await caller.get(f"/blueprint_applications/{application['id']}"))


async def ended(caller: Caller, application: Any) -> Any:
    async def look() -> Any:
        now = await seen(caller, application)
        return now if now["completed_at"] else None

    return await until(look)


async def running_statement(caller: Caller, application: Any, index: int) -> None:
    """Waits until this statement of it is under way."""

    async def look() -> bool:
        log = (await seen(caller, application))["execution_log"] or []
        return any(entry["index"] == index and entry["status"] == "running" for entry in log)

    await until(look)


async def gated(caller: Caller, engine: str, name: str = "db") -> Any:
    """A new database with a gate, which is shut."""
    database = await caller.created(name, db_type=engine)
    await _execute(database, *_SHUT_GATE[engine])
    return database


async def open_gate(database: Any) -> None:
    await _execute(database, "DELETE FROM gate")


async def _execute(database: Any, *statements: str) -> None:
    connected = postgres if database["db_type"] == Engine.POSTGRES else mysql
    async with connected(database["connection_string"]) as session:
        for statement in statements:
            await session.execute(statement)


async def tables(database: Any) -> list[str]:
    """Of the database, as its tenant sees them."""
    query = "SELECT table_name FROM information_schema.tables WHERE table_schema = {} ORDER BY 1"
    if database["db_type"] == Engine.POSTGRES:
        async with postgres(database["connection_string"]) as connection:
            return [row[0] for row in await connection.fetch(query.format("'public'"))]
    async with mysql(database["connection_string"]) as cursor:
        await cursor.execute(query.format("DATABASE()"))
        return [row[0] for row in await cursor.fetchall()]


_POSTGRES_CATALOGS = """
SELECT 'class', oid::bigint, relname::text, relkind::text FROM pg_class WHERE relnamespace = 'public'::regnamespace
UNION ALL SELECT 'proc', oid::bigint, proname::text, '' FROM pg_proc WHERE pronamespace = 'public'::regnamespace
UNION ALL SELECT 'type', oid::bigint, typname::text, '' FROM pg_type WHERE typnamespace = 'public'::regnamespace
UNION ALL SELECT 'schema', oid::bigint, nspname::text, '' FROM pg_namespace WHERE nspname !~ '^pg_'
UNION ALL SELECT 'database', 0, datname::text, '' FROM pg_database
UNION ALL SELECT 'role', 0, rolname::text, '' FROM pg_roles
"""
_MYSQL_CATALOGS = """
SELECT 'table', table_schema, table_name, CONVERT(create_time USING utf8mb4) FROM information_schema.tables
    WHERE table_schema NOT IN ('information_schema', 'performance_schema', 'sys', 'mysql')
UNION ALL SELECT 'column', table_schema, CONCAT(table_name, '.', column_name), column_type
    FROM information_schema.columns
    WHERE table_schema NOT IN ('information_schema', 'performance_schema', 'sys', 'mysql')
UNION ALL SELECT 'routine', routine_schema, routine_name, '' FROM information_schema.routines
    WHERE routine_schema NOT IN ('sys', 'mysql')
UNION ALL SELECT 'database', schema_name, '', '' FROM information_schema.schemata
UNION ALL SELECT 'account', CONVERT(user USING utf8mb4), '', '' FROM mysql.user
UNION ALL SELECT 'marker', CONVERT(name USING utf8mb4), '', '' FROM headwater.tenants
"""


async def catalogs(service: RunningService, database: Any) -> list[Any]:
    """Everything in the database and on its server that a script could leave behind, sorted."""
    if database["db_type"] == Engine.POSTGRES:
        dsn = re.sub(r"/[^/]*$", f"/{database['db_name']}", service.postgres.admin_dsn)
        async with postgres(dsn) as connection:
            return sorted(tuple(row) for row in await connection.fetch(_POSTGRES_CATALOGS))
    assert service.mysql is not None
    async with mysql(service.mysql.admin_dsn) as cursor:
        await cursor.execute(_MYSQL_CATALOGS)
        return sorted(str(row) for row in await cursor.fetchall())
