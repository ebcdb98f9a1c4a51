"""The corpus on real servers: what is allowed runs; and with the first wall switched off, the roles alone hold."""

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from app.contracts.base import Engine
from app.dialects.postgres.judge import fields, functions
from app.dialects.registry import DIALECTS
from app.dialects.verdict import AllowedSQL, Refused, SqlClass
from app.engines.base import Access, EngineError, Tenant
from app.engines.querying import QueryFailed, QueryLimits
from tests.dialects.corpus import mysql, postgres
from tests.dialects.corpus.mutations import in_any_clothes, mutations
from tests.engines.accounts import session_as, user_of
from tests.engines.harness import EngineHost, RefusedError, Session, as_root, session_of, tenants
from tests.engines.postgres_host import PostgresSession
from tests.support.waiting import LIMIT_SECONDS

PASSWORD = "Reader-passw0rd"
LIMITS = QueryLimits(seconds=LIMIT_SECONDS, rows=100)
HASTY = QueryLimits(seconds=0.3, lock_seconds=1, rows=100)
TRACES = (Path("/tmp/headwater-red"),)


def engine_of(host: EngineHost) -> Engine:
    return Engine.POSTGRES if host.flavour == "postgres" else Engine.MYSQL


@asynccontextmanager
async def tenant_with(host: EngineHost, fixture: tuple[str, ...]) -> AsyncIterator[Tenant]:
    async with tenants(host) as [tenant]:
        async with session_of(host, tenant) as session:
            for statement in fixture:
                await session.run(statement)
        await host.adapter.make_reader(tenant, PASSWORD)
        yield tenant


async def execute(host: EngineHost, tenant: Tenant, verdict: AllowedSQL, limits: QueryLimits = LIMITS) -> None:
    """As the service does."""
    if verdict.sql_class is SqlClass.SELECT:
        async with host.adapter.reading(tenant, PASSWORD, limits) as reading:
            await reading.read(verdict.statements[0])
        return
    async with host.adapter.writing(tenant, limits) as writing:
        if verdict.sql_class is SqlClass.WRITE:
            await writing.write(verdict.statements[0])
        else:
            await writing.change(verdict.statements)


def corpus_of(host: EngineHost) -> Any:
    return postgres if host.flavour == "postgres" else mysql


async def test_what_is_allowed_runs(host: EngineHost) -> None:
    corpus = corpus_of(host)
    async with tenant_with(host, corpus.FIXTURE) as tenant:
        for sql in (*corpus.READS, *corpus.WRITES, *corpus.CHANGES):
            await execute(host, tenant, DIALECTS[engine_of(host)].judge(sql, tenant.name))


async def test_functions_that_name_their_own_column_are_known(host: EngineHost) -> None:
    """To take another name for the column would be to take a call for it."""
    if host.flavour != "postgres":
        pytest.skip("a column is never a call here")
    found = await as_root(
        host,
        "SELECT DISTINCT proname::text FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace"
        " AND cardinality(array_positions(proargmodes::text[], 'o') || array_positions(proargmodes::text[], 't')) = 1",
    )
    assert {name for (name,) in found} & functions.WRITING == fields.NAMED_VALUES


async def test_reads_give_the_same_in_any_clothes(host: EngineHost) -> None:
    corpus = corpus_of(host)
    async with tenant_with(host, corpus.FIXTURE) as tenant:
        for name, mutate in mutations(engine_of(host).value).items():
            for sql in corpus.READS[:8]:
                verdict = DIALECTS[engine_of(host)].judge(mutate(sql), tenant.name)
                async with host.adapter.reading(tenant, PASSWORD, LIMITS) as one:
                    dressed = (await one.read(verdict.statements[0])).rows
                async with host.adapter.reading(tenant, PASSWORD, LIMITS) as other:
                    assert dressed == (await other.read(sql.rstrip(";"))).rows, (name, sql)


async def test_the_roles_alone_keep_reads_from_writing(host: EngineHost) -> None:
    """The first wall is off: every statement of the corpus, refused or not, as the reading role."""
    corpus = corpus_of(host)
    async with tenant_with(host, corpus.FIXTURE) as tenant, tenant_with(host, corpus.FIXTURE) as neighbour:
        before = await state(host, tenant), await state(host, neighbour)
        settings = await server_settings(host)
        for sql in (*corpus.WRITES, *corpus.CHANGES, *corpus.REFUSED):
            with contextlib.suppress(EngineError, UnicodeError, ValueError):
                async with host.adapter.reading(tenant, PASSWORD, HASTY) as session:
                    await session.read(sql)
        assert (await state(host, tenant), await state(host, neighbour)) == before
        assert await server_settings(host) == settings
        assert not any(path.exists() for path in TRACES)


async def test_the_rights_of_a_user_that_reads_keep_it_from_writing(host: EngineHost) -> None:
    """A plain client of its own, that nothing but the rights of its account stands in the way of."""
    corpus = corpus_of(host)
    async with tenant_with(host, corpus.FIXTURE) as tenant, tenant_with(host, corpus.FIXTURE) as neighbour:
        user = user_of(tenant, Access.READ_ONLY, connections=100)
        await host.adapter.put_user(tenant, user)
        before, settings = (await state(host, tenant), await state(host, neighbour)), await server_settings(host)
        attacks = [*corpus.WRITES, *corpus.CHANGES, *corpus.REFUSED]
        attacks += [*REACHING[engine_of(host)], *reaching(host, neighbour)]
        while attacks:
            # An attack may have changed the account's own password.
            await host.adapter.put_user(tenant, user)
            with contextlib.suppress(ConnectionError, TimeoutError, UnicodeError, ValueError):
                async with session_as(host, tenant, user) as session:
                    await _run_in(session, attacks)
        assert (await state(host, tenant), await state(host, neighbour)) == before
        assert await server_settings(host) == settings
        assert not any(path.exists() for path in TRACES)
        async with session_as(host, tenant, user) as session:
            await session.run(corpus.READS[0])


async def _run_in(session: Session, attacks: list[str]) -> None:
    """Takes one after the other from the list, until one ends the session or takes long."""
    while attacks:
        sql = attacks.pop()
        with contextlib.suppress(RefusedError):
            async with asyncio.timeout(HASTY.seconds):
                if isinstance(session, PostgresSession):
                    await session.connection.execute("ROLLBACK; RESET ALL; SET default_transaction_read_only = off")
                await session.run(sql)


async def test_the_roles_alone_keep_everyone_from_files_others_and_settings(host: EngineHost) -> None:
    """The first wall is off, for writes too: the tenant's own account."""
    corpus = corpus_of(host)
    async with tenant_with(host, corpus.FIXTURE) as neighbour:
        before, settings = await state(host, neighbour), await server_settings(host)
        stolen: list[str] = []
        async with tenant_with(host, corpus.FIXTURE) as tenant:
            for sql in [*REACHING[engine_of(host)], *reaching(host, neighbour)]:
                with contextlib.suppress(QueryFailed):
                    async with host.adapter.writing(tenant, HASTY) as session:
                        await session.write(sql)
                        stolen.append(sql)
        # What MySQL answers with NULL, or leaves in the session's own variables, is no gain.
        assert stolen == []
        assert await state(host, neighbour) == before
        assert await server_settings(host) == settings
        assert not any(path.exists() for path in TRACES)


async def test_the_reading_account_alone_sees_no_neighbour(host: EngineHost) -> None:
    """The first wall is off: whatever it asks about its server, the neighbour's names are not among the answers."""
    corpus = corpus_of(host)
    hidden = (*corpus.FIXTURE, "CREATE TABLE hidden_from_others (n INT)")
    async with tenant_with(host, corpus.FIXTURE) as tenant, tenant_with(host, hidden) as neighbour:
        for sql in LOOKING[engine_of(host)]:
            seen = ""
            with contextlib.suppress(QueryFailed):
                async with host.adapter.reading(tenant, PASSWORD, HASTY) as reading:
                    seen = str((await reading.read(sql.replace("NEIGHBOUR", neighbour.name))).rows)
            assert "hidden_from_others" not in seen, sql
            assert sql in ITS_OWN or neighbour.name not in seen, sql


ITS_OWN = ("SELECT datname FROM pg_database",)
"""PostgreSQL shows everybody which databases and roles there are: their names are random."""
LOOKING = {
    Engine.POSTGRES: (
        *ITS_OWN,
        "SELECT relname FROM pg_class",
        "SELECT query FROM pg_stat_activity",
        "SELECT '{hidden_from_others}'::_regclass",
        "EXPLAIN SELECT * FROM hidden_from_others",
    ),
    Engine.MYSQL: (
        "SHOW DATABASES",
        "SHOW TABLES FROM `NEIGHBOUR`",
        "SHOW FULL TABLES IN `NEIGHBOUR`",
        "SHOW COLUMNS FROM hidden_from_others FROM `NEIGHBOUR`",
        "SHOW INDEX FROM `NEIGHBOUR`.orders",
        "SHOW CREATE TABLE `NEIGHBOUR`.hidden_from_others",
        "SHOW CREATE VIEW `NEIGHBOUR`.spent",
        "SHOW TABLE STATUS FROM `NEIGHBOUR`",
        "SHOW TRIGGERS FROM `NEIGHBOUR`",
        "SHOW CREATE DATABASE `NEIGHBOUR`",
        "SHOW GRANTS FOR `NEIGHBOUR`@`%`",
        "SHOW CREATE USER `NEIGHBOUR`@`%`",
        "SHOW FULL PROCESSLIST",
        "SHOW OPEN TABLES",
        "SHOW ENGINE INNODB STATUS",
        "DESCRIBE `NEIGHBOUR`.hidden_from_others",
        "DESCRIBE mysql.user",
        "SHOW COLUMNS FROM mysql.user",
        "EXPLAIN SELECT * FROM `NEIGHBOUR`.hidden_from_others",
        "EXPLAIN SELECT * FROM mysql.user",
        "SHOW TABLES WHERE 1 = (SELECT COUNT(*) FROM `NEIGHBOUR`.hidden_from_others)",
    ),
}


REACHING = {
    Engine.POSTGRES: (
        "SELECT pg_read_file('/etc/passwd')",
        "SELECT lo_import('/etc/passwd')",
        "COPY orders TO '/tmp/headwater-red'",
        "COPY orders TO PROGRAM 'cat > /tmp/headwater-red'",
        "COPY log (note) FROM '/etc/passwd'",
        "SELECT lo_export(lo_from_bytea(0, 'x'), '/tmp/headwater-red')",
        "SELECT * FROM pg_authid",
        "ALTER SYSTEM SET work_mem = '1GB'",
        "SELECT pg_reload_conf()",
        "SET ROLE postgres",
        "CREATE ROLE mine SUPERUSER",
        "CREATE EXTENSION dblink",
        "CREATE TABLESPACE t LOCATION '/tmp'",
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename <> current_user LIMIT 1",
    ),
    Engine.MYSQL: (
        "SELECT * FROM orders INTO OUTFILE '/tmp/headwater-red'",
        "LOAD DATA INFILE '/etc/passwd' INTO TABLE log",
        "LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE log",
        "SELECT * FROM mysql.user",
        "INSERT INTO mysql.db VALUES (1)",
        "SET GLOBAL max_connections = 1",
        "CREATE USER mine",
        "GRANT ALL ON *.* TO CURRENT_USER",
        "CREATE DATABASE mine",
        "SHUTDOWN",
        "FLUSH TABLES WITH READ LOCK",
        "KILL 1",
    ),
}


def reaching(host: EngineHost, neighbour: Tenant) -> list[str]:
    if host.flavour == "postgres":
        name = f'"{neighbour.name}"'
        return [f"SET ROLE {name}", f"DROP DATABASE {name}", f"ALTER ROLE {name} NOLOGIN"]
    return [
        f"SELECT * FROM `{neighbour.name}`.orders",
        f"DROP DATABASE `{neighbour.name}`",
        f"DELETE FROM `{neighbour.name}`.items WHERE qty > 0",
    ]


async def state(host: EngineHost, tenant: Tenant) -> Any:
    """All that the fixture's tables hold, and which objects there are."""
    names = ("customers", "products", "orders", "items", "log")
    async with session_of(host, tenant) as session:
        rows = [await session.run(f"SELECT * FROM {name} ORDER BY 1, 2") for name in names]
        schema = "public" if host.flavour == "postgres" else tenant.name
        objects = await session.run(
            f"SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = '{schema}' ORDER BY 1"
        )
        sequence = await session.run("SELECT last_value, is_called FROM ticket") if host.flavour == "postgres" else []
    return rows, objects, sequence


async def server_settings(host: EngineHost) -> Any:
    """Settings, and who may log in."""
    if host.flavour == "postgres":
        roles = await as_root(host, "SELECT rolname, rolsuper, rolcanlogin FROM pg_roles ORDER BY 1")
        return await as_root(host, "SELECT name, reset_val FROM pg_settings ORDER BY 1"), roles
    names = "'max_connections', 'sql_mode', 'read_only', 'local_infile'"
    variables = await as_root(host, f"SHOW GLOBAL VARIABLES WHERE variable_name IN ({names})")
    return variables, await as_root(host, "SELECT user, host FROM mysql.user ORDER BY 1, 2")


@pytest.mark.skipif(not os.environ.get("REDTEAM_FILE"), reason="REDTEAM_FILE names no file of labelled statements")
async def test_labelled_statements_on_the_server(host: EngineHost) -> None:
    """Beside the file lies `<its name>_fixture_<dialect>.sql`. No denied statement takes effect, every allowed one
    runs, each on a database of its own state."""
    engine = engine_of(host)
    statements, mine = labelled(Path(os.environ["REDTEAM_FILE"]), engine)
    for name, mutate in in_any_clothes(engine.value).items():
        async with tenant_with(host, statements) as tenant:
            for line in mine:
                try:
                    verdict = DIALECTS[engine].judge(mutate(line["sql"]), tenant.name)
                except Refused:
                    assert line["label"] == "deny", (name, line)
                    continue
                assert line["label"] == "allow", (name, line)
                await execute(host, tenant, verdict)


def labelled(file: Path, engine: Engine) -> tuple[tuple[str, ...], list[dict[str, Any]]]:
    """The fixture's statements, and this engine's lines."""
    fixture = file.with_name(f"{file.stem}_fixture_{engine.value}.sql").read_text()
    statements = tuple(line for line in fixture.splitlines() if line and not line.startswith("--"))
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    return statements, [line for line in lines if line["dialect"] == engine.value]
