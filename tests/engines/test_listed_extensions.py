"""The extensions of an operator's list: in every new database from the start, and out of their tenants' hands."""

import re
from collections.abc import AsyncIterator

import asyncpg
import pytest
import pytest_asyncio

from app.engines.base import EngineError
from app.engines.postgres import make_template
from app.engines.postgres.extensions import REVIEWED, SCRIPT, check_names
from app.engines.querying import QueryLimits
from tests import servers
from tests.engines.harness import LIMITS, new_tenant, refusal, session_of, tenants
from tests.engines.postgres_host import PostgresHost
from tests.servers import RunningServer

DENIED, DISK_FULL, UNDEFINED = "42501", "53100", "42704"
READER_PASSWORD = "reader-password"
NEAREST = "SELECT id FROM items ORDER BY embedding <-> '[1,2,4]'::vector LIMIT 1"


@pytest_asyncio.fixture(scope="module")
async def own_server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningServer]:
    """Of this module's own: the template is the whole server's."""
    async with servers.postgres(tmp_path_factory.mktemp("listed")) as server:
        yield server


@pytest_asyncio.fixture
async def listing(own_server: RunningServer) -> AsyncIterator[PostgresHost]:
    host = PostgresHost(own_server)
    await host.prepare()
    await _list(own_server, *REVIEWED)
    yield host
    await host.adapter.close()


async def _list(server: RunningServer, *names: str) -> None:
    superuser = await asyncpg.connect(server.admin_dsn)
    try:
        await make_template(superuser, {"dsn": server.admin_dsn}, extensions=names)
    finally:
        await superuser.close()


async def test_a_tenant_uses_them_and_changes_none(listing: PostgresHost) -> None:
    assert set(REVIEWED) <= set(await listing.adapter.extensions())
    async with tenants(listing) as [tenant], session_of(listing, tenant) as session:
        for name in REVIEWED:
            await session.run(f"CREATE EXTENSION IF NOT EXISTS {name} WITH SCHEMA public")
            for change in (
                f"DROP EXTENSION {name} CASCADE",
                f"ALTER EXTENSION {name} UPDATE",
                f"ALTER EXTENSION {name} SET SCHEMA public",
                f"COMMENT ON EXTENSION {name} IS 'mine'",
            ):
                assert await refusal(session, change) == DENIED, change
        for change in (
            "ALTER TYPE vector OWNER TO CURRENT_USER",
            "ALTER FUNCTION l2_distance(vector, vector) SECURITY DEFINER",
            "CREATE OR REPLACE FUNCTION pg_catalog.l2_distance(vector, vector) RETURNS float8 LANGUAGE sql RETURN 0",
            "CREATE CAST (vector AS bytea) WITHOUT FUNCTION",
            "DROP TYPE vector CASCADE",
        ):
            assert await refusal(session, change) == DENIED, change
        # What a framework empties its database with, and what a tenant can do at its worst.
        await session.run("DROP SCHEMA public CASCADE")
        await session.run("CREATE SCHEMA public")
        await session.run("DROP OWNED BY CURRENT_USER CASCADE")
    async with tenants(listing) as [other], session_of(listing, other) as session:
        await session.run("CREATE TABLE items (id int, embedding vector(3))")
        await session.run("INSERT INTO items VALUES (1, '[1,2,3]'), (2, '[9,9,9]')")
        await session.run("CREATE INDEX ON items USING hnsw (embedding vector_l2_ops)")
        await session.run("CREATE INDEX ON items USING bloom (id)")
        assert await session.run(NEAREST) == [(1,)]


async def test_one_that_emptied_its_database_has_them_still(listing: PostgresHost) -> None:
    async with tenants(listing) as [tenant]:
        async with session_of(listing, tenant) as session:
            await session.run("DROP SCHEMA public CASCADE")
            await session.run("DROP OWNED BY CURRENT_USER CASCADE")
        await listing.adapter.repair(tenant)
        async with session_of(listing, tenant) as session:
            assert await session.run("SELECT '[1,2,3]'::vector <-> '[1,2,4]'") == [(1.0,)]


async def test_they_belong_to_the_superuser_and_run_with_the_callers_rights(listing: PostgresHost) -> None:
    members = """
        SELECT p.proowner::regrole::text, p.prosecdef, p.pronamespace::regnamespace::text
        FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid AND d.refclassid = 'pg_extension'::regclass
        JOIN pg_proc p ON p.oid = d.objid AND d.classid = 'pg_proc'::regclass
        WHERE e.extname <> 'plpgsql' GROUP BY 1, 2, 3
    """
    async with tenants(listing) as [tenant]:
        assert await listing.as_root_in(tenant, members) == [("postgres", False, "pg_catalog")]
        owners = "SELECT DISTINCT extowner::regrole::text FROM pg_extension"
        assert await listing.as_root_in(tenant, owners) == [("postgres",)]


async def test_frozen_restored_and_asked(listing: PostgresHost) -> None:
    adapter = listing.adapter
    async with tenants(listing) as [tenant]:
        async with session_of(listing, tenant) as session:
            await session.run("CREATE TABLE items (id int, embedding vector(3))")
            await session.run("INSERT INTO items VALUES (1, '[1,2,3]'), (2, '[9,9,9]')")
        await adapter.make_reader(tenant, READER_PASSWORD)
        rights = await listing.rights(tenant)
        await adapter.freeze(tenant)
        async with session_of(listing, tenant) as session:
            assert await session.run(NEAREST) == [(1,)]
            assert await refusal(session, "CREATE TABLE more (embedding vector(3))") == DISK_FULL
            assert await refusal(session, "INSERT INTO items VALUES (3, '[1,1,1]')") == DENIED
            await session.run("DELETE FROM items WHERE embedding <-> '[9,9,9]' = 0")
        await adapter.revoke_access(tenant)
        await adapter.restore_access(tenant, frozen=True)
        await adapter.thaw(tenant)
        assert await listing.rights(tenant) == rights
        async with adapter.reading(tenant, READER_PASSWORD, QueryLimits(rows=10, seconds=10)) as reading:
            answer = await reading.read(NEAREST)
        assert [list(row.values()) for row in answer.rows] == [[1]]


async def test_what_the_list_leaves_out_goes_from_new_databases(
    listing: PostgresHost, own_server: RunningServer
) -> None:
    await _list(own_server, "vector")
    assert set(REVIEWED) & set(await listing.adapter.extensions()) == {"vector"}
    async with tenants(listing) as [tenant], session_of(listing, tenant) as session:
        assert await refusal(session, "CREATE EXTENSION IF NOT EXISTS bloom") == DENIED
    await _list(own_server)
    assert not set(REVIEWED) & set(await listing.adapter.extensions())
    async with tenants(listing) as [tenant], session_of(listing, tenant) as session:
        assert await refusal(session, "SELECT '[1]'::vector") == UNDEFINED


async def test_a_lesser_administrator_is_shown_what_is_missing(
    listing: PostgresHost, own_server: RunningServer
) -> None:
    await _list(own_server)
    assert any("lack the extension vector" in told for told in await listing.adapter.harden_host(["vector"]))
    superuser = PostgresHost(own_server, superuser=True)
    try:
        assert not any("extension" in told for told in await superuser.adapter.harden_host(["vector"]))
    finally:
        await superuser.adapter.close()
    assert not any("extension" in told for told in await listing.adapter.harden_host(["vector"]))


async def test_nobody_but_the_templates_owner_says_what_it_has(listing: PostgresHost) -> None:
    async with tenants(listing) as [tenant], session_of(listing, tenant) as session:
        assert await refusal(session, "COMMENT ON DATABASE headwater_template IS 'x; extensions dblink'") == DENIED
    assert "dblink" not in await listing.adapter.extensions()


async def test_a_database_of_before_gets_them_from_a_superuser(
    listing: PostgresHost, own_server: RunningServer
) -> None:
    await _list(own_server)
    tenant = new_tenant()
    await listing.adapter.create(tenant, LIMITS)
    try:
        async with session_of(listing, tenant) as session:
            # A better match than the system's own, for a superuser who looks where the tenant makes things.
            await session.run(
                "CREATE FUNCTION public.format(text, text) RETURNS text LANGUAGE plpgsql"
                " AS $$ BEGIN RAISE 'called by %', current_user; END $$"
            )
        inside = await asyncpg.connect(own_server.admin_dsn, database=tenant.name)
        try:
            await inside.execute("SET headwater.extensions = 'vector';" + SCRIPT.read_text())
        finally:
            await inside.close()
        async with session_of(listing, tenant) as session:
            assert await session.run("SELECT '[1,2,3]'::vector <-> '[1,2,4]'") == [(1.0,)]
    finally:
        await listing.adapter.destroy(tenant)


@pytest.mark.parametrize(
    "name", ["dblink", "file_fdw", "postgres_fdw", "plpython3u", "pageinspect", "citext", 'x"; --']
)
async def test_any_other_name_is_refused_with_the_reason(own_server: RunningServer, name: str) -> None:
    with pytest.raises(EngineError, match=re.escape(f"{name}: ")):
        check_names(["vector", name])
    with pytest.raises(EngineError):
        await _list(own_server, "vector", name)
    inside = await asyncpg.connect(own_server.admin_dsn)
    try:
        await inside.execute("SELECT set_config('headwater.extensions', $1, false)", name)
        with pytest.raises(asyncpg.RaiseError, match="may not be in"):
            await inside.execute(SCRIPT.read_text())
    finally:
        await inside.close()


def test_the_script_and_the_module_have_the_same_list() -> None:
    listed = re.search(r"judged CONSTANT text\[\] := '\{(.+)\}'", SCRIPT.read_text())
    assert listed is not None
    assert tuple(listed[1].split(",")) == REVIEWED


@pytest.mark.parametrize("made", ["SECURITY DEFINER", "table"])
async def test_a_version_that_would_run_with_the_superusers_rights_is_refused(
    listing: PostgresHost, own_server: RunningServer, made: str
) -> None:
    """Whatever another version of a judged one may bring."""
    statement = {
        "SECURITY DEFINER": "CREATE FUNCTION {} () RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT 1'",
        "table": "CREATE TABLE {} (i int)",
    }[made]
    kind, name = ("TABLE", "public.brought") if made == "table" else ("FUNCTION", "public.brought()")
    async with tenants(listing) as [tenant]:
        inside = await asyncpg.connect(own_server.admin_dsn, database=tenant.name)
        try:
            await inside.execute(statement.format("public.brought"))
            await inside.execute(f"ALTER EXTENSION vector ADD {kind} {name}")
            await inside.execute("SET headwater.extensions = 'vector'")
            with pytest.raises(asyncpg.RaiseError, match="what no tenant may have"):
                await inside.execute(SCRIPT.read_text())
        finally:
            await inside.close()
