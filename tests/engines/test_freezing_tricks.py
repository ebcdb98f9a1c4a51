"""What a frozen tenant tries in order to write again, one trick at a time, with all that it could prepare before."""

from collections.abc import AsyncIterator, Sequence

import pytest
import pytest_asyncio

from app.engines.base import Tenant
from tests.engines.harness import EngineHost, kind_of, refusal, session_of, tenants

PREPARED = {
    "postgres": [
        "CREATE TABLE kept (n serial PRIMARY KEY, t text, ro int DEFAULT 1)",
        "INSERT INTO kept (t) SELECT 'x' FROM generate_series(1, 10)",
        "CREATE TABLE parts (n int) PARTITION BY RANGE (n)",
        "CREATE TABLE parts_low PARTITION OF parts FOR VALUES FROM (0) TO (100)",
        "CREATE UNLOGGED TABLE loose (n int)",
        "CREATE VIEW window_on AS SELECT n, t FROM kept",
        "CREATE MATERIALIZED VIEW copy_of AS SELECT * FROM kept",
        "CREATE SCHEMA second CREATE TABLE kept (n int)",
        "CREATE FUNCTION writes() RETURNS void LANGUAGE sql SECURITY DEFINER AS "
        "'INSERT INTO public.kept (t) VALUES (''definer'')'",
        "CREATE FUNCTION creates() RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS "
        "'BEGIN EXECUTE ''CREATE TABLE made (n int)''; END'",
        "CREATE FUNCTION on_delete() RETURNS trigger LANGUAGE plpgsql AS "
        "'BEGIN INSERT INTO public.loose VALUES (1); RETURN OLD; END'",
        "CREATE TRIGGER noted AFTER DELETE ON second.kept FOR EACH STATEMENT EXECUTE FUNCTION on_delete()",
        "GRANT ALL ON ALL TABLES IN SCHEMA public TO PUBLIC",
        "GRANT INSERT (t), UPDATE (t) ON kept TO PUBLIC",
        "GRANT ALL ON SCHEMA public TO PUBLIC",
        "ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO PUBLIC",
        "SELECT lo_create(4711)",
    ],
    "mysql": [
        "CREATE TABLE kept (n INT PRIMARY KEY AUTO_INCREMENT, t VARCHAR(100))",
        "INSERT INTO kept (t) VALUES ('a'), ('b'), ('c')",
        "CREATE TABLE loose (n INT)",
        "INSERT INTO loose VALUES (1)",
        "CREATE VIEW window_on AS SELECT n, t FROM kept",
        "CREATE PROCEDURE writes() SQL SECURITY DEFINER INSERT INTO kept (t) VALUES ('definer')",
        "CREATE PROCEDURE creates() SQL SECURITY DEFINER CREATE TABLE made (n INT)",
        "CREATE FUNCTION filled() RETURNS INT DETERMINISTIC MODIFIES SQL DATA "
        "BEGIN INSERT INTO kept (t) VALUES ('f'); RETURN 1; END",
        "CREATE TRIGGER noted AFTER DELETE ON loose FOR EACH ROW INSERT INTO kept (t) VALUES ('trigger')",
    ],
}
TRICKS = {
    "postgres": [
        "GRANT INSERT ON kept TO CURRENT_USER",
        "GRANT ALL ON ALL TABLES IN SCHEMA public TO CURRENT_USER",
        "GRANT CREATE ON SCHEMA public TO CURRENT_USER",
        "ALTER TABLE kept OWNER TO CURRENT_USER",
        "REASSIGN OWNED BY CURRENT_USER TO CURRENT_USER",
        "ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO CURRENT_USER",
        "INSERT INTO window_on (t) VALUES ('view')",
        "INSERT INTO parts VALUES (1)",
        "INSERT INTO parts_low VALUES (1)",
        "INSERT INTO loose VALUES (1)",
        "INSERT INTO second.kept VALUES (1)",
        "MERGE INTO kept k USING (SELECT 1 AS n) s ON false WHEN NOT MATCHED THEN INSERT (t) VALUES ('merge')",
        "WITH w AS (INSERT INTO kept (t) VALUES ('cte') RETURNING n) SELECT * FROM w",
        "EXPLAIN ANALYZE INSERT INTO kept (t) VALUES ('explain')",
        "UPDATE kept SET t = repeat('x', 100000)",
        "SELECT writes()",
        "SELECT creates()",
        "DELETE FROM second.kept",
        "DO $$ BEGIN INSERT INTO kept (t) VALUES ('do'); END $$",
        "SELECT * INTO made FROM kept",
        "CREATE UNLOGGED TABLE made (n int)",
        "CREATE TEMPORARY TABLE made (n int)",
        "CREATE SEQUENCE made",
        "CREATE SCHEMA made",
        "CREATE SCHEMA made CREATE TABLE made (n int)",
        "CREATE TYPE made AS (n int)",
        "CREATE FUNCTION made() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE EXTENSION citext",
        "CREATE PUBLICATION made FOR ALL TABLES",
        "CREATE RULE made AS ON DELETE TO kept DO ALSO INSERT INTO loose VALUES (1)",
        "REFRESH MATERIALIZED VIEW copy_of",
        "COMMENT ON TABLE kept IS 'long'",
        "ALTER TABLE kept ALTER COLUMN ro TYPE bigint",
        "SELECT lo_create(0)",
        "SELECT lo_from_bytea(0, decode(repeat('00', 100000), 'hex'))",
        "SELECT lo_put(4711, 0, decode(repeat('00', 100000), 'hex'))",
        "SELECT lowrite(lo_open(4711, 131072), decode(repeat('00', 100000), 'hex'))",
        "SELECT pg_catalog.headwater_large_objects(true)",
        "SELECT pg_catalog.headwater_take_public()",
        "DROP EVENT TRIGGER headwater_guard",
        "ALTER EVENT TRIGGER headwater_guard DISABLE",
        "DROP FUNCTION pg_catalog.headwater_guard() CASCADE",
        "DROP EXTENSION plpgsql CASCADE",
        "SET event_triggers = off",
        "SET session_replication_role = replica",
        "ALTER ROLE CURRENT_USER SET event_triggers = off",
        "ALTER ROLE CURRENT_USER SET session_replication_role = replica",
        "ALTER DATABASE {name} SET session_replication_role = replica",
        "ALTER DATABASE {name} OWNER TO CURRENT_USER",
        "SET SESSION AUTHORIZATION conformance_provisioner",
        "SET ROLE conformance_provisioner",
    ],
    "mysql": [
        "REPLACE INTO kept VALUES (1, 'replaced')",
        "INSERT INTO kept VALUES (1, 'a') ON DUPLICATE KEY UPDATE t = 'longer'",
        "INSERT INTO window_on (t) VALUES ('view')",
        "CALL writes()",
        "CALL creates()",
        "SELECT filled()",
        "DELETE FROM loose",
        "RENAME TABLE kept TO made",
        "ALTER TABLE kept ENGINE = InnoDB",
        "OPTIMIZE TABLE kept",
        "CREATE TABLE made LIKE kept",
        "CREATE OR REPLACE VIEW made AS SELECT 1",
        "CREATE PROCEDURE made() SELECT 1",
        "CREATE TRIGGER made AFTER DELETE ON kept FOR EACH ROW SET @x = 1",
        "CREATE EVENT made ON SCHEDULE EVERY 1 SECOND DO INSERT INTO kept (t) VALUES ('e')",
        "CREATE DATABASE made",
        "CREATE DATABASE {name}x",
        "GRANT INSERT ON {name}.* TO '{name}'@'%'",
        "SET ROLE ALL",
        "SET GLOBAL read_only = 0",
        "LOCK TABLES kept WRITE, kept AS k WRITE",
        "CREATE SEQUENCE made",
        "LOAD DATA INFILE '/etc/hostname' INTO TABLE kept",
    ],
}
HARMLESS = {
    "REASSIGN OWNED BY CURRENT_USER TO CURRENT_USER",
    "SET ROLE ALL",
    "LOCK TABLES kept WRITE, kept AS k WRITE",
    "OPTIMIZE TABLE kept",
    "CREATE TRIGGER made AFTER DELETE ON kept FOR EACH ROW SET @x = 1",
}
"""Tricks that the engine may take, and that change nothing."""


@pytest_asyncio.fixture
async def frozen(host: EngineHost) -> AsyncIterator[Tenant]:
    async with tenants(host) as [tenant]:
        async with session_of(host, tenant) as session:
            for statement in PREPARED[kind_of(host)]:
                await session.run(statement)
        await host.adapter.freeze(tenant)
        yield tenant


async def _contents(host: EngineHost, tenant: Tenant, tables: Sequence[str]) -> list[object]:
    async with session_of(host, tenant) as session:
        return [await session.run(f"SELECT * FROM {table} ORDER BY 1") for table in tables]


async def test_every_trick_is_refused_and_leaves_no_trace(host: EngineHost, frozen: Tenant) -> None:
    tables = ["kept", "loose", *(["parts", "second.kept"] if host.flavour == "postgres" else [])]
    before = await _contents(host, frozen, tables), await host.rights(frozen)
    for trick in TRICKS[kind_of(host)]:
        async with session_of(host, frozen) as session:
            code = await refusal(session, trick.format(name=frozen.name))
            assert code is not None or trick in HARMLESS, trick
            # And once more in the same session, after the trick.
            assert await refusal(session, "INSERT INTO kept (t) VALUES ('after')") is not None, trick
            assert await refusal(session, "CREATE TABLE made (n INT)") is not None, trick
    assert (await _contents(host, frozen, tables), await host.rights(frozen)) == before


async def test_dropping_everything_is_no_way_round(host: EngineHost, frozen: Tenant) -> None:
    everything = {
        "postgres": ["DROP SCHEMA public CASCADE", "DROP SCHEMA second CASCADE"],
        "mysql": [f"DROP DATABASE {frozen.name}"],
    }[kind_of(host)]
    async with session_of(host, frozen) as session:
        for statement in everything:
            await session.run(statement)
        for attempt in ("CREATE SCHEMA public", f"CREATE DATABASE {frozen.name}", "CREATE TABLE made (n INT)"):
            assert await refusal(session, attempt) is not None, attempt
    await host.adapter.thaw(frozen)
    async with session_of(host, frozen) as session:
        if host.flavour == "postgres":
            assert await refusal(session, "CREATE SCHEMA public") is None
        await session.run("CREATE TABLE made (n INT)")


async def test_giving_up_its_own_grants_is_no_way_round(host: EngineHost, frozen: Tenant) -> None:
    if host.flavour != "postgres":
        pytest.skip("only PostgreSQL has DROP OWNED")
    async with session_of(host, frozen) as session:
        await session.run("DROP OWNED BY CURRENT_USER CASCADE")
        for attempt in ("CREATE SCHEMA public", "CREATE TABLE made (n INT)", "CREATE TEMPORARY TABLE made (n INT)"):
            assert await refusal(session, attempt) is not None, attempt
    await host.adapter.revoke_access(frozen)
    await host.adapter.restore_access(frozen)
    await host.adapter.verify_login(frozen)


async def test_a_dump_of_its_own_sees_what_it_needs(host: EngineHost, frozen: Tenant) -> None:
    """pg_dump locks every table that it finds; it may lock none that it can't read."""
    if host.flavour != "postgres":
        pytest.skip("mysqldump locks the tables of the tenant's own database alone")
    async with session_of(host, frozen) as session:
        rows = await session.run(
            "SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
            "WHERE c.relkind IN ('r', 'p') AND n.nspname !~ '^(pg_|information_schema)'"
        )
        await session.run("BEGIN")
        for (table,) in rows:
            await session.run(f"LOCK TABLE {table} IN ACCESS SHARE MODE")
        assert (
            await session.run(
                "SELECT evtname::text FROM pg_event_trigger e WHERE NOT EXISTS "
                "(SELECT FROM pg_depend d WHERE d.objid = e.oid AND d.deptype = 'e')"
            )
            == []
        ), "what belongs to an extension is in no dump"
