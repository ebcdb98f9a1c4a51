"""The role with which the service logs in to our own database: what it can't do, and how it comes to be."""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import msgspec
import pytest
import pytest_asyncio

from app.core.secrets import new_key_setting
from app.store.migrate import follow_migrations
from app.store.rights import RULES, TableRules, give_rights
from app.store.service_role import powers_beyond_need
from app.store.session import fetch, transaction
from app.upkeep.reconcile.store_role import check_store_role
from tests.cli.command import Headwater
from tests.servers import RunningServer
from tests.store import releases
from tests.store.test_migrations import begin, ready
from tests.support.store import execute_at, new_database, service_dsn, store

_RULES = TableRules(insert_only=RULES.insert_only | {"kept"})
_PERMITTED = (
    "INSERT INTO kept (at, text) VALUES (now(), 'a')",
    "SELECT * FROM kept",
    "INSERT INTO notes (text) VALUES ('a')",
    "UPDATE notes SET text = 'b'",
    "DELETE FROM notes",
    "LOCK TABLE notes IN SHARE MODE",
    "SELECT pg_notify('here', 'a')",
    "SELECT pg_advisory_lock(1), pg_advisory_unlock(1)",
)
_REFUSED = (
    # rows that stay as they are written, through their table and past it
    "UPDATE kept SET text = 'b'",
    "DELETE FROM kept",
    "TRUNCATE kept",
    "MERGE INTO kept USING (SELECT 'a' AS text) s ON kept.text = s.text WHEN MATCHED THEN DELETE",
    "INSERT INTO kept (id, at, text) VALUES (1, now(), 'a') ON CONFLICT (id, at) DO UPDATE SET text = 'b'",
    "SELECT * FROM kept FOR UPDATE",
    "UPDATE kept_1 SET text = 'b'",
    "DELETE FROM kept_1",
    "TRUNCATE kept_1",
    "INSERT INTO kept_1 (at, text) VALUES (now(), 'a')",
    # what has run
    "DELETE FROM migration",
    "INSERT INTO migration (name, app_name) VALUES ('a', 'headwater')",
    # tables
    "TRUNCATE notes",
    "CREATE TABLE more (n int)",
    "CREATE TEMPORARY TABLE more (n int)",
    "CREATE SCHEMA more",
    "CREATE VIEW more AS SELECT 1",
    "CREATE FUNCTION more() RETURNS int LANGUAGE sql RETURN 1",
    "CREATE INDEX ON notes (text)",
    "ALTER TABLE notes ADD COLUMN more int",
    "DROP TABLE notes",
    "ALTER TABLE kept DETACH PARTITION kept_1",
    "CREATE RULE more AS ON DELETE TO notes DO INSTEAD NOTHING",
    "COMMENT ON TABLE notes IS 'mine'",
    "SELECT setval('notes_id_seq', 1)",
    # triggers
    "ALTER TABLE notes DISABLE TRIGGER ALL",
    "CREATE TRIGGER more BEFORE UPDATE ON notes FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()",
    "SET session_replication_role = replica",
    # other roles
    "ALTER TABLE notes OWNER TO CURRENT_USER",
    "SET ROLE postgres",
    "SET SESSION AUTHORIZATION postgres",
    "CREATE ROLE more",
    "CREATE DATABASE more",
    "ALTER ROLE CURRENT_USER SUPERUSER",
    "GRANT postgres TO CURRENT_USER",
    # the server
    "COPY notes TO PROGRAM 'true'",
    "COPY notes FROM '/etc/passwd'",
    "SELECT pg_read_file('PG_VERSION')",
    "ALTER SYSTEM SET fsync = off",
    "CREATE EXTENSION dblink",
)
_NOTES = "CREATE TABLE notes (id bigserial PRIMARY KEY, text text)"
_KEPT = "CREATE TABLE kept (id bigserial, at timestamptz, text text, PRIMARY KEY (id, at)) PARTITION BY RANGE (at)"
_PARTITION = "CREATE TABLE kept_1 PARTITION OF kept FOR VALUES FROM ('2020-01-01') TO ('2120-01-01')"


@pytest_asyncio.fixture
async def owner(control_server: RunningServer) -> str:
    """An empty database, for its owner."""
    return await new_database(control_server.admin_dsn)


def named(dsn: str, role: str) -> str:
    parts = urlsplit(service_dsn(dsn))
    return urlunsplit(parts._replace(netloc=f"{role}:otherPassw0rd@{parts.hostname}:{parts.port}"))


@pytest_asyncio.fixture(scope="module")
async def with_tables(control_server: RunningServer) -> str:
    """A database with a table whose rows stay, and one of another kind, as the service logs in to it."""
    owner = await new_database(control_server.admin_dsn)
    await _prepare(owner, service_dsn(owner))
    await execute_at(owner, _NOTES, _KEPT, _PARTITION, "INSERT INTO kept (at, text) VALUES (now(), 'a')")
    async with store(owner), transaction():
        await give_rights("headwater_service", _RULES)
    return service_dsn(owner)


async def _prepare(admin_dsn: str, dsn: str) -> None:
    """In a process without a pool of its own, as `headwater migrate` is."""
    done = await Headwater({"CONTROL_ADMIN_DSN": admin_dsn, "CONTROL_DSN": dsn}).json("migrate")
    assert done == {"role": urlsplit(dsn).username, "advice": None}


@pytest_asyncio.fixture
async def session(with_tables: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(with_tables)
    yield connection
    await connection.close()


async def test_it_reads_and_writes_rows(session: asyncpg.Connection) -> None:
    for statement in _PERMITTED:
        async with session.transaction():
            await session.execute(statement)


async def test_it_does_nothing_else(session: asyncpg.Connection) -> None:
    await session.execute("GRANT DELETE ON kept TO CURRENT_USER")  # a mere warning, and no right
    done = []
    for statement in _REFUSED:
        try:
            await session.execute(statement)
        except (asyncpg.InsufficientPrivilegeError, asyncpg.InvalidParameterValueError):
            continue
        done.append(statement)
    assert done == []


async def test_as_it_should_be_it_has_no_power_beyond_its_need(with_tables: str) -> None:
    async with store(with_tables):
        assert await powers_beyond_need(rules=_RULES) == []
        assert await check_store_role() == []


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ("ALTER ROLE {role} SUPERUSER", "is a superuser"),
        ("ALTER ROLE {role} CREATEROLE CREATEDB", "may make roles, make databases"),
        ("ALTER ROLE {role} BYPASSRLS", "may bypass row level security"),
        ("GRANT pg_write_all_data TO {role}", "may become pg_write_all_data"),
        ("GRANT postgres TO {role}", "may become postgres, which is a superuser"),
        ("ALTER TABLE notes OWNER TO {role}", "owns 1 tables, notes among them"),
        ("ALTER DATABASE {database} OWNER TO {role}", "owns the database"),
        ("GRANT CREATE ON SCHEMA public TO {role}", "may create in the schema public"),
        ("GRANT UPDATE, DELETE ON kept TO {role}", "may delete, update rows of kept"),
        ("GRANT UPDATE ON kept_1 TO {role}", "may update rows of kept_1"),
        ("GRANT TRUNCATE ON notes TO PUBLIC", "may truncate rows of notes"),
        ("GRANT INSERT ON migration TO {role}", "may insert rows of migration"),
        ("GRANT TRIGGER ON notes TO {role}", "may make triggers on notes and 0 other tables"),
    ],
)
async def test_a_role_with_more_is_found(owner: str, change: str, found: str) -> None:
    role = f"r{urlsplit(owner).path[-12:]}"
    await _prepare(owner, named(owner, role))
    await execute_at(owner, _NOTES, _KEPT, _PARTITION)
    async with store(owner), transaction():
        await give_rights(role, _RULES)
    await execute_at(owner, change.format(role=role, database=f'"{urlsplit(owner).path[1:]}"'))
    try:
        async with store(named(owner, role)):
            assert found in await powers_beyond_need(rules=_RULES)
    finally:
        await execute_at(owner, f"ALTER ROLE {role} NOSUPERUSER")


async def test_an_owner_is_a_finding_that_says_what_to_do(control_admin_dsn: str) -> None:
    async with store(control_admin_dsn):
        (finding,) = await check_store_role()
    assert (finding.rule, finding.subject) == ("store_role_excessive", "postgres")
    assert "is a superuser" in finding.detail
    assert "HEADWATER_CONTROL_ADMIN_DSN" in finding.detail
    assert "headwater migrate" in finding.detail


async def test_what_is_declared_is_there_and_nothing_deletes_its_rows(control_admin_dsn: str) -> None:
    async with store(control_admin_dsn):
        tables = await fetch("SELECT relname FROM pg_class WHERE relkind IN ('r', 'p')")
        acting = await fetch(
            "SELECT DISTINCT conrelid::regclass::text AS name FROM pg_constraint"
            " WHERE contype = 'f' AND (confdeltype <> 'a' OR confupdtype <> 'a')"
        )
    assert {row["relname"] for row in tables} >= RULES.insert_only
    assert not {row["name"] for row in acting} & RULES.insert_only


@pytest.mark.parametrize("release", releases.releases())
async def test_an_installation_of_a_release_gets_its_role(release: str, owner: str) -> None:
    """Its processes log in as the owner, and go on so until there is a role; then they may have that one."""
    releases.load(owner, release)
    async with store(owner):
        await follow_migrations()
        assert await check_store_role() != []
    await _prepare(owner, service_dsn(owner))
    async with store(service_dsn(owner)):
        await follow_migrations()
        assert await check_store_role() == []
        assert await fetch("SELECT 1 FROM users")


async def test_several_at_once_make_it_once(owner: str) -> None:
    dsn = named(owner, f"r{urlsplit(owner).path[-12:]}")
    environ = {"HEADWATER_CONTROL_ADMIN_DSN": owner, "HEADWATER_CONTROL_DSN": dsn, "PATH": os.environ["PATH"]}
    command = (str(Path(sys.executable).with_name("headwater")), "migrate", "--json")
    running = [await asyncio.create_subprocess_exec(*command, env=environ, stdout=PIPE, stderr=PIPE) for _ in range(3)]
    assert [await one.communicate() for one in running] == [
        (msgspec.json.encode({"role": urlsplit(dsn).username, "advice": None}) + b"\n", b"")
    ] * 3
    await execute_at(dsn, "SELECT 1 FROM users")


async def test_a_process_waits_until_somebody_has_migrated(owner: str, migrated_dsn: str) -> None:
    dsn = service_dsn(owner)
    releases.load(owner, releases.releases()[-1])
    async with store(owner), transaction():
        await give_rights("headwater_service")
    command = Headwater({"CONTROL_DSN": dsn, "SECRET_KEYS": new_key_setting()})
    assert "may not change them. Run 'headwater migrate'" in await command.refusal("teams", "list")
    process = await ready(dsn)
    begin(process)
    assert process.stdout is not None
    assert b"waiting_for_migrations" in await process.stdout.readline()
    await _prepare(owner, dsn)
    assert await process.wait() == 0
    assert await command.run("teams", "list")


async def test_a_role_that_is_too_mighty_is_not_taken(owner: str) -> None:
    command = Headwater({"CONTROL_ADMIN_DSN": owner, "CONTROL_DSN": owner, "SECRET_KEYS": new_key_setting()})
    refused = await command.refusal("migrate")
    assert (
        "the role postgres of HEADWATER_CONTROL_DSN has more power than the service should have: it is a super"
        in refused
    )
    assert "a name that no role has yet" in refused


async def test_a_password_that_was_changed_is_put_back(owner: str) -> None:
    dsn = named(owner, f"r{urlsplit(owner).path[-12:]}")
    await _prepare(owner, dsn)
    changed = dsn.replace("otherPassw0rd", "a%20password%40")
    await _prepare(owner, changed)
    await execute_at(changed, "SELECT 1")
    with pytest.raises(asyncpg.InvalidPasswordError):
        await asyncpg.connect(dsn)


async def test_no_statement_has_the_password(owner: str, control_server: RunningServer) -> None:
    dsn = named(owner, f"r{urlsplit(owner).path[-12:]}")
    await _prepare(owner, dsn)
    log = control_server.log.read_text()
    assert "PASSWORD 'SCRAM-SHA-256$" in log
    assert "otherPassw0rd" not in log


async def test_an_administrator_who_makes_no_roles_says_who_has_to(owner: str) -> None:
    role, lesser = (f"{letter}{urlsplit(owner).path[-12:]}" for letter in "ra")
    await execute_at(
        owner,
        f"CREATE ROLE {lesser} LOGIN PASSWORD 'otherPassw0rd'",
        f'ALTER DATABASE "{urlsplit(owner).path[1:]}" OWNER TO {lesser}',
    )
    settings = {"CONTROL_ADMIN_DSN": named(owner, lesser), "CONTROL_DSN": named(owner, role)}
    refused = await Headwater(settings).refusal("migrate")
    assert f"CREATE ROLE {role} LOGIN NOSUPERUSER" in refused
    await execute_at(owner, f"CREATE ROLE {role} LOGIN PASSWORD 'otherPassw0rd'")
    await _prepare(named(owner, lesser), named(owner, role))
