"""The tenants' own tools after a rotation: what it dumped before it can restore, and the other way round."""

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from app.engines.base import Access, Tenant
from app.local.postgres import find_programs
from tests.engines.accounts import login_of, rotated, session_as, user_of
from tests.engines.harness import EngineHost, session_of, tenants
from tests.servers import RunningServer

_postgres = pytest.mark.parametrize("engine_server", ["postgres"], indirect=True, scope="session")
_mysql = pytest.mark.parametrize("engine_server", ["mysql", "oracle"], indirect=True, scope="session")

SHOP = """
CREATE SCHEMA shop;
CREATE TABLE shop.orders (id bigserial PRIMARY KEY, note text NOT NULL, at timestamptz DEFAULT now());
INSERT INTO shop.orders (note) SELECT 'n' || n FROM generate_series(1, 50) n;
CREATE VIEW shop.recent AS SELECT * FROM shop.orders WHERE id > 40;
CREATE MATERIALIZED VIEW shop.counted AS SELECT count(*) AS n FROM shop.orders;
CREATE FUNCTION shop.one() RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE INDEX ON shop.orders (note);
CREATE EXTENSION citext;
SELECT lo_from_bytea(4711, 'large');
"""


async def _tool(server: RunningServer, tenant: Tenant, program: str, *arguments: str, stdin: bytes = b"") -> bytes:
    """As the tenant's client runs it: nothing on its command line or in its script knows of other roles."""
    process = await asyncio.create_subprocess_exec(
        str(find_programs(None) / program),
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=os.environ
        | {
            "PGHOST": server.host,
            "PGPORT": str(server.port),
            "PGUSER": login_of(tenant).name,
            "PGPASSWORD": tenant.password,
            "PGDATABASE": tenant.name,
        },
    )
    output, errors = await process.communicate(stdin)
    assert process.returncode == 0, errors.decode()
    assert not errors, errors.decode()
    return output


@_postgres
async def test_psql_and_dumps_work_as_before(host: EngineHost, engine_server: RunningServer, tmp_path: Path) -> None:
    async with tenants(host, 2) as [tenant, target]:
        await _tool(engine_server, tenant, "psql", "-qAtX", "-v", "ON_ERROR_STOP=1", stdin=SHOP.encode())
        first = str(tmp_path / "first")
        await _tool(engine_server, tenant, "pg_dump", "-Fc", "-f", first)
        await host.adapter.put_user(tenant, user_of(tenant, Access.READ_ONLY))
        moved, arrived = await rotated(host, tenant), await rotated(host, target)
        # What the tenant dumped before the rotation goes into the place of what is there.
        await _tool(
            engine_server, moved, "pg_restore", "--clean", "--if-exists", "--exit-on-error", "-d", tenant.name, first
        )
        await _tool(engine_server, moved, "psql", "-qAtX", "-v", "ON_ERROR_STOP=1", "-c", "CREATE TABLE newer (n int)")
        again = str(tmp_path / "again")
        await _tool(engine_server, moved, "pg_dump", "-Fc", "-f", again)
        assert b"FUNCTION pg_catalog." not in await _tool(engine_server, moved, "pg_restore", "-f", "-", again)
        # And into another database, whose owner has another name.
        await _tool(
            engine_server,
            arrived,
            "pg_restore",
            "--no-owner",
            "--no-privileges",
            "--exit-on-error",
            "-d",
            target.name,
            again,
        )
        async with session_as(host, arrived, login_of(arrived)) as session:
            assert await session.run("SELECT count(*) FROM shop.orders") == [(50,)]
            await session.run("DROP SCHEMA shop CASCADE")
        owned = "SELECT DISTINCT relowner::regrole::text FROM pg_class WHERE relnamespace = 'shop'::regnamespace"
        assert await host.as_root_in(tenant, owned) == [(tenant.name,)]


@_postgres
async def test_a_reader_dumps_what_it_reads(host: EngineHost, engine_server: RunningServer) -> None:
    async with tenants(host) as [tenant]:
        reader = user_of(tenant, Access.READ_ONLY)
        await host.adapter.put_user(tenant, reader)
        async with session_of(host, tenant) as session:
            await session.run("CREATE TABLE kept (n serial)")
            await session.run("INSERT INTO kept DEFAULT VALUES")
        client = Tenant(name=tenant.name, login=reader.name, password=reader.password, marker=tenant.marker)
        assert b"COPY public.kept" in await _tool(engine_server, client, "pg_dump")


_MYSQL_SHOP = """
CREATE TABLE orders (id INT AUTO_INCREMENT PRIMARY KEY, note TEXT NOT NULL);
INSERT INTO orders (note) VALUES ('first'), ('second');
CREATE VIEW recent AS SELECT * FROM orders WHERE id > 1;
CREATE FUNCTION first_note() RETURNS INT DETERMINISTIC RETURN 1;
CREATE PROCEDURE adding() INSERT INTO orders (note) VALUES ('third');
CREATE TRIGGER short BEFORE INSERT ON orders FOR EACH ROW SET NEW.note = LEFT(NEW.note, 10);
"""


@_mysql
async def test_a_dump_with_routines_after_a_rotation(host: EngineHost, engine_server: RunningServer) -> None:
    """What the account made before it was rotated is still its own: it reads the bodies, and makes them again."""
    names = {"mariadb": ("mariadb", "mariadb-dump"), "mysql": ("mysql", "mysqldump")}[host.flavour]
    client, dump = (shutil.which(name) or "" for name in names)
    if not (client and dump) or ("MariaDB" in await _version(dump)) != (host.flavour == "mariadb"):
        pytest.skip("no client tools of this server's own")
    async with tenants(host) as [tenant]:
        await _mysql_tool(engine_server, tenant, client, stdin=_MYSQL_SHOP)
        moved = await rotated(host, tenant)
        # For the transactions' names, MySQL's tool would flush tables, which a tenant may not.
        names_of = ["--set-gtid-purged=OFF"] if host.flavour == "mysql" else []
        dumped = await _mysql_tool(
            *(engine_server, moved, dump, "--single-transaction", "--no-tablespaces", "--routines", "--triggers"),
            *names_of,
        )
        await _mysql_tool(
            engine_server, moved, client, stdin="DROP TABLE orders; DROP VIEW recent; DROP FUNCTION first_note"
        )
        await _mysql_tool(engine_server, moved, client, stdin=dumped)
        async with session_as(host, moved, login_of(moved)) as session:
            await session.run("CALL adding()")
            assert await session.run("SELECT note, first_note() FROM recent") == [("second", 1), ("third", 1)]


async def _version(program: str) -> str:
    process = await asyncio.create_subprocess_exec(program, "--version", stdout=asyncio.subprocess.PIPE)
    return (await process.communicate())[0].decode()


async def _mysql_tool(
    server: RunningServer, tenant: Tenant, program: str, *arguments: str, stdin: str | bytes = b""
) -> bytes:
    process = await asyncio.create_subprocess_exec(
        program,
        "--no-defaults",
        "--protocol=TCP",
        f"--host={server.host}",
        f"--port={server.port}",
        f"--user={login_of(tenant).name}",
        *arguments,
        tenant.name,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=os.environ | {"MYSQL_PWD": tenant.password},
    )
    output, errors = await process.communicate(stdin.encode() if isinstance(stdin, str) else stdin)
    assert process.returncode == 0, errors.decode()
    return output
