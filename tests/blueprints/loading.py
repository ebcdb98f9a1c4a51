"""Two ways to load a script into a tenant's database, and what the catalogs hold afterwards."""

import asyncio
import os
import re
import shutil
import warnings
from typing import Any
from urllib.parse import unquote, urlsplit

import aiomysql
import asyncpg
import pytest
from pymysql.constants import CLIENT

from app.blueprints.preparation import PreparedStatement
from app.engines.base import Tenant
from app.local.postgres import find_programs
from tests.engines.harness import EngineHost, RefusedError
from tests.servers import RunningServer

_MYSQL_CATALOG = (
    "SELECT 'table', table_name, table_type, engine, table_collation, table_comment, create_options "
    "FROM information_schema.tables WHERE table_schema = '{name}'",
    "SELECT 'column', table_name, column_name, column_default, is_nullable, column_type, character_set_name, "
    "column_key, extra, column_comment, generation_expression "
    "FROM information_schema.columns WHERE table_schema = '{name}'",
    "SELECT 'index', table_name, index_name, seq_in_index, column_name, non_unique, sub_part, index_type "
    "FROM information_schema.statistics WHERE table_schema = '{name}'",
    "SELECT 'key', constraint_name, table_name, column_name, referenced_table_name, referenced_column_name "
    "FROM information_schema.key_column_usage WHERE table_schema = '{name}'",
    "SELECT 'routine', routine_name, routine_type, routine_definition, routine_comment, is_deterministic "
    "FROM information_schema.routines WHERE routine_schema = '{name}'",
    "SELECT 'trigger', trigger_name, event_object_table, action_timing, event_manipulation, action_statement "
    "FROM information_schema.triggers WHERE trigger_schema = '{name}'",
    "SELECT 'view', table_name, security_type, check_option FROM information_schema.views "
    "WHERE table_schema = '{name}'",
)


async def apply(host: EngineHost, tenant: Tenant, statements: list[PreparedStatement]) -> None:
    """As the tenant, one statement after the other through a plain driver; on PostgreSQL in one transaction."""
    session = await host.login(tenant)
    todo = [statement for statement in statements if statement.left_out is None]
    try:
        if host.flavour == "postgres":
            await session.run("BEGIN")
        for statement in todo:
            try:
                await session.run(statement.text)
            except RefusedError as error:
                raise AssertionError(f"line {statement.line}: {error}\n{statement.text[:300]}") from error
        if host.flavour == "postgres":
            await session.run("COMMIT")
    finally:
        await session.close()


async def load_plainly(server: RunningServer, tenant: Tenant, script: str) -> None:
    """As the server's administrator, with the engine's own client. MySQL's needs a DELIMITER around routines; a script
    without any is split by the server itself."""
    if server.flavour == "postgres":
        program = str(find_programs(None) / "psql")
        arguments = ["-X", "-q", "-v", "ON_ERROR_STOP=1", "-1", "-d", _dsn(server, tenant), "-f", "-"]
        await _run(program, *arguments, stdin=script.encode())
        return
    if "DELIMITER" not in script:
        await _send_whole(server, tenant, script)
        return
    found = shutil.which("mysql") or shutil.which("mariadb")
    if found is None:
        pytest.skip("no mysql client on this machine")
    where = [
        f"-h{server.host}",
        f"-P{server.port}",
        f"-u{server.user}",
        "--default-character-set=utf8mb4",
        "--comments",
    ]
    await _run(found, *where, tenant.name, stdin=script.encode(), environment={"MYSQL_PWD": server.password})


async def _send_whole(server: RunningServer, tenant: Tenant, script: str) -> None:
    connection = await aiomysql.connect(
        host=server.host,
        port=server.port,
        user=server.user,
        password=server.password,
        db=tenant.name,
        charset="utf8mb4",
        client_flag=CLIENT.MULTI_STATEMENTS,
        autocommit=True,
    )
    try:
        with warnings.catch_warnings():
            # What the server only advises, such as against `INT(11)`.
            warnings.simplefilter("ignore")
            async with connection.cursor() as cursor:
                await cursor.execute(script)
                while await cursor.nextset():
                    pass
    finally:
        connection.close()


async def catalog(server: RunningServer, host: EngineHost, tenant: Tenant) -> list[str]:
    """Every object in the tenant's database and the number of each table's rows, in a comparable order."""
    if server.flavour == "postgres":
        return await _postgres_catalog(server, tenant)
    root = await host.root()
    try:
        rows: list[tuple[Any, ...]] = []
        for query in _MYSQL_CATALOG:
            rows += await root.run(query.format(name=tenant.name))
        for table in [row[1] for row in rows if row[0] == "table" and row[2] == "BASE TABLE"]:
            rows += await root.run(
                f"SELECT 'rows', '{table}', COUNT(*) FROM `{tenant.name}`.`{table.replace('`', '``')}`"
            )
    finally:
        await root.close()
    # What the server splits by itself keeps the semicolon in a body without a block.
    return sorted(str([str(value).rstrip(";") for value in row]).replace(tenant.name, "tenant") for row in rows)


async def dumped(server: RunningServer, tenant: Tenant, *options: str) -> str:
    """The tenant's database as the dump program of the engine writes it. On MySQL that program may be missing, and the
    test is skipped."""
    if server.flavour == "postgres":
        return await _run(str(find_programs(None) / "pg_dump"), *options, "-d", _dsn(server, tenant))
    if server.flavour != "mariadb":
        pytest.skip("no dump program of this engine is installed")
    return (await dumped_octets(server, tenant, *options)).decode()


async def dumped_octets(server: RunningServer, tenant: Tenant, *options: str) -> bytes:
    """As mariadb-dump writes it, which knows MySQL's servers too; where it is missing the test is skipped."""
    program = shutil.which("mariadb-dump")
    if program is None:
        pytest.skip("mariadb-dump is not installed")
    address = urlsplit(server.admin_dsn)
    arguments = ["-h", str(address.hostname), "-P", str(address.port), "-u", str(address.username)]
    password = {"MYSQL_PWD": unquote(address.password or "")}
    return await _output(program, *arguments, *options, tenant.name, environment=password)


async def _postgres_catalog(server: RunningServer, tenant: Tenant) -> list[str]:
    program = str(find_programs(None) / "pg_dump")
    dump = await _run(program, "--schema-only", "--no-owner", "--no-privileges", "-d", _dsn(server, tenant))
    connection = await asyncpg.connect(_dsn(server, tenant))
    try:
        tables = await connection.fetch(
            "SELECT c.oid::regclass::text AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
            "WHERE c.relkind IN ('r', 'm') AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast') "
            "ORDER BY 1"
        )
        counts = [
            f"{row['name']}: {await connection.fetchval('SELECT count(*) FROM ' + row['name'])}" for row in tables
        ]
    finally:
        await connection.close()
    lines = [line for line in dump.splitlines() if not re.match(r"\\(un)?restrict", line)]
    return [*lines, *counts]


def _dsn(server: RunningServer, tenant: Tenant) -> str:
    head, _, tail = server.admin_dsn.rpartition("/")
    _, mark, query = tail.partition("?")
    return f"{head}/{tenant.name}{mark}{query}"


async def _run(
    program: str, *arguments: str, stdin: bytes | None = None, environment: dict[str, str] | None = None
) -> str:
    return (await _output(program, *arguments, stdin=stdin, environment=environment)).decode()


async def _output(
    program: str, *arguments: str, stdin: bytes | None = None, environment: dict[str, str] | None = None
) -> bytes:
    process = await asyncio.create_subprocess_exec(
        program,
        *arguments,
        stdin=asyncio.subprocess.PIPE if stdin is not None else asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=os.environ | (environment or {}),
    )
    output, errors = await process.communicate(stdin)
    assert process.returncode == 0, errors.decode()
    return output
