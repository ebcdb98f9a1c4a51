"""What PostgreSQL's own dumps leave out, run or name, and what ours don't."""

import asyncio
import difflib
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.engines.base import EngineAdapter, EngineLimits, HostFull, HostUnavailable, Tenant
from app.engines.dumping import DumpRefused, LoadRefused
from app.engines.postgres import PostgresAdapter
from app.engines.postgres.connections import PostgresConnections
from app.engines.postgres.dumps import dump, fingerprints, helpers
from app.engines.postgres.dumps import snapshot as snapshots
from app.engines.postgres.dumps.archive import Archive
from app.engines.postgres.dumps.dump import server_version
from app.engines.postgres.dumps.processes import RunningTool, environment
from app.engines.postgres.dumps.refusals import answering
from app.engines.postgres.dumps.snapshot import snapshot
from app.engines.postgres.dumps.tools import DumpTools
from tests.engines.harness import LIMITS, EngineHost, as_root, new_tenant, refusal, session_of, tenants
from tests.engines.test_dumps import dumped, streamed, tables
from tests.engines.text_dumps import text_of
from tests.engines.ways import cut_off
from tests.servers import RunningServer
from tests.support.waiting import LIMIT_SECONDS, until

pytestmark = pytest.mark.parametrize("engine_server", ["postgres"], indirect=True, scope="session")

EVERYTHING = Path(__file__).parent / "schemas" / "postgres_everything.sql"


async def cut_often(
    host: EngineHost, call: Callable[[EngineAdapter], Awaitable[None]], step: int
) -> AsyncIterator[None]:
    """The call again and again, each time cut off `step` messages later, until it is made in full."""
    last = 0
    while await cut_off(host, last := last + step, call):
        yield
    assert last > 2 * step
    yield


async def make_everything(host: EngineHost, tenant: Tenant) -> None:
    async with session_of(host, tenant) as session:
        for statement in EVERYTHING.read_text().split(";\n"):
            if statement.strip():
                await session.run(statement)


async def test_everything_that_a_tenant_may_make_is_loaded_equal(
    host: EngineHost, engine_server: RunningServer
) -> None:
    async with tenants(host, 2) as [source, target]:
        await make_everything(host, source)
        chunks, form, told = await dumped(host, source)
        await host.adapter.load(target, form, streamed(chunks))
        assert await host.adapter.contents(target) == told
        before, after = [await text_of(engine_server, tenant) for tenant in (source, target)]
        # A column of a parent that came later than the child's own.
        assert [line for line in difflib.unified_diff(before, after, n=0) if line[0] in "+-"][2:] == [
            "-1\t2\tw",
            "+1\tw\t2",
            "-COPY public.chi (a, b, z) FROM stdin;",
            "+COPY public.chi (a, z, b) FROM stdin;",
        ]
        rows = tables(told)
        assert (rows['"public"."secured"'], rows['"public"."unlogged"'], rows['"public"."parted1"']) == (2, 1, 9)


async def test_one_tenants_roles_are_never_named_in_anothers_database(host: EngineHost) -> None:
    """Or the one could not be removed any more."""
    async with tenants(host, 2) as [source, target]:
        async with session_of(host, source) as session:
            await session.run("CREATE TABLE pets (name text, owner text)")
            await session.run("ALTER TABLE pets ENABLE ROW LEVEL SECURITY")
            await session.run(f"CREATE POLICY own ON pets TO {source.name}, pg_monitor USING (owner = current_user)")
            await session.run(
                f"CREATE POLICY \"to {source.name}\" ON pets TO {source.name} WITH CHECK (name <> 'TO x')"
            )
            await session.run(f"GRANT SELECT (name) ON pets TO pg_monitor, {target.name}")
            await session.run(f"ALTER DEFAULT PRIVILEGES REVOKE SELECT ON TABLES FROM {source.name}")
        chunks, form, told = await dumped(host, source)
        await host.adapter.load(target, form, streamed(chunks))
        assert await host.adapter.contents(target) == told
        async with session_of(host, source) as session:
            await session.run(f"REVOKE ALL (name) ON pets FROM {target.name}")
        await host.adapter.destroy(source)
        async with session_of(host, target) as session:
            assert await session.run("SELECT polname, polroles::regrole[]::text FROM pg_policy ORDER BY 1") == [
                ("own", f"{{pg_monitor,{target.name}}}"),
                (f"to {source.name}", f"{{{target.name}}}"),
            ]


async def test_nothing_that_a_tenant_defined_is_run_by_a_dump(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        async with session_of(host, tenant) as session:
            await session.run("CREATE TYPE pair AS (a int, b text)")
            await session.run("CREATE TABLE pets (p pair, d int)")
            await session.run("INSERT INTO pets VALUES (ROW(1, 'x'), 3)")
            for name, takes, gives in (
                ("as_text", "pets", "text"),
                ("pair_as_text", "pair", "text"),
                ("hashtextextended", "text, bigint", "bigint"),
                ("record_out", "pets", "text"),
                ("textin", "text", "text"),
                ("starts_with", "text, text", "boolean"),
                ("same", "bigint, bigint", "boolean"),
            ):
                await session.run(
                    f"CREATE FUNCTION {name}({takes}) RETURNS {gives} LANGUAGE plpgsql IMMUTABLE"
                    " AS $$ BEGIN RAISE EXCEPTION 'run as %', current_user; END $$"
                )
            await session.run("CREATE CAST (pets AS text) WITH FUNCTION as_text(pets) AS IMPLICIT")
            await session.run("CREATE CAST (pair AS text) WITH FUNCTION pair_as_text(pair) AS IMPLICIT")
            await session.run("CREATE OPERATOR = (leftarg = bigint, rightarg = bigint, function = same)")
            for setting in (
                "search_path = public, pg_catalog",
                "statement_timeout = 1",
                "default_transaction_read_only = on",
                "row_security = off",
                "lock_timeout = 1",
                "DateStyle = 'German'",
                "bytea_output = 'escape'",
                "local_preload_libraries = 'nothing'",
            ):
                await session.run(f"ALTER ROLE {tenant.name} SET {setting}")
        _, _, told = await dumped(host, tenant)
        assert tables(told) == {'"public"."pets"': 1}
        assert await host.adapter.contents(tenant) == told


@asynccontextmanager
async def lesser_provisioner(host: EngineHost) -> AsyncIterator[tuple[PostgresAdapter, Tenant]]:
    """An administrator who can't let accounts read past policies, and its tenant."""
    tenant, name = new_tenant(), "lesser_provisioner"
    await as_root(
        host,
        f"CREATE ROLE {name} LOGIN CREATEDB CREATEROLE PASSWORD '{tenant.password}'",
        f"GRANT CONNECT ON DATABASE postgres TO {name}",
    )
    adapter = PostgresAdapter(msgspec.structs.replace(host.administrator, user=name, password=tenant.password))
    try:
        await adapter.create(tenant, LIMITS)
        yield adapter, tenant
    finally:
        await adapter.destroy(tenant)
        await adapter.close()
        await as_root(host, f"DROP OWNED BY {name}", f"DROP ROLE {name}")


async def test_without_bypassrls_forced_policies_are_refused_and_others_are_not(host: EngineHost) -> None:
    async with lesser_provisioner(host) as (adapter, tenant):
        facts = await adapter.inspect_host()
        assert any("BYPASSRLS" in sentence for sentence in facts.shortcomings)
        async with session_of(host, tenant) as session:
            await session.run("CREATE TABLE pets (n int)")
            await session.run("INSERT INTO pets VALUES (1), (2)")
            await session.run("ALTER TABLE pets ENABLE ROW LEVEL SECURITY")
        async with adapter.dumping(tenant) as dump:
            assert [chunk async for chunk in dump.chunks()]
            assert tables(await dump.contents()) == {'"public"."pets"': 2}
        async with session_of(host, tenant) as session:
            await session.run("ALTER TABLE pets FORCE ROW LEVEL SECURITY")
        with pytest.raises(DumpRefused, match=r'"pets".*BYPASSRLS'):
            async with adapter.dumping(tenant):
                pass
    facts = await host.adapter.inspect_host()
    assert not any("BYPASSRLS" in sentence for sentence in facts.shortcomings)


async def test_a_table_under_an_exclusive_lock_is_named(host: EngineHost) -> None:
    async with tenants(host) as [tenant], session_of(host, tenant) as session:
        before = await host.catalog()
        await session.run("CREATE TABLE pets (n int)")
        await session.run("BEGIN")
        await session.run("LOCK TABLE pets IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(DumpRefused, match=r'"pets".*lock'):
            async with host.adapter.dumping(tenant):
                pass
        await session.run("ROLLBACK")
        assert await host.catalog() == before
        await dumped(host, tenant)


async def test_a_table_emptied_meanwhile_is_dumped_as_it_was(host: EngineHost) -> None:
    async with tenants(host, 2) as [tenant, target], session_of(host, tenant) as session:
        await session.run("CREATE TABLE pets (n int)")
        await session.run("INSERT INTO pets SELECT generate_series(1, 1000)")
        async with host.adapter.dumping(tenant) as dump:
            emptying = asyncio.create_task(session.run("TRUNCATE pets"))
            await until(lambda: lock_waits(host, tenant))
            chunks = [chunk async for chunk in dump.chunks()]
            told = await dump.contents()
        await emptying
        assert tables(told) == {'"public"."pets"': 1000}
        await host.adapter.load(target, dump.format, streamed(chunks))
        assert await host.adapter.contents(target) == told


@pytest.fixture
def patient_dumps(monkeypatch: pytest.MonkeyPatch) -> None:
    """They wait for a lock for as long as a test takes to look."""
    monkeypatch.setitem(fingerprints.SESSION_SETTINGS, "lock_timeout", f"{LIMIT_SECONDS:.0f}s")


@pytest.mark.usefixtures("patient_dumps")
async def test_a_table_made_between_the_locks_and_the_moment_is_dumped_too(host: EngineHost) -> None:
    async with tenants(host) as [tenant], session_of(host, tenant) as session:
        await session.run("CREATE TABLE pets (n int)")
        await session.run("BEGIN")
        await session.run("LOCK TABLE pets IN ACCESS EXCLUSIVE MODE")
        dumping = asyncio.create_task(dumped(host, tenant))
        await until(lambda: lock_waits(host, tenant))
        await session.run("CREATE TABLE toys AS SELECT 1 AS n")
        await session.run("COMMIT")
        _, _, told = await dumping
        assert tables(told) == {'"public"."pets"': 0, '"public"."toys"': 1}


@pytest.mark.usefixtures("patient_dumps")
async def test_tables_made_all_the_time_are_said(host: EngineHost) -> None:
    async with tenants(host) as [tenant], session_of(host, tenant) as session:
        await session.run("CREATE TABLE pets (n int)")
        await session.run("BEGIN")
        await session.run("LOCK TABLE pets IN ACCESS EXCLUSIVE MODE")
        dumping, made = asyncio.create_task(dumped(host, tenant)), 0
        while not dumping.done():
            await until(lambda: over_or_waiting(dumping, host, tenant))
            made += 1
            await session.run(f"CREATE TABLE toys{made} (n int)")
            await session.run("COMMIT")
            await session.run("BEGIN")
            await session.run("LOCK TABLE pets IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(DumpRefused, match="all the time"):
            await dumping
        await session.run("ROLLBACK")


async def test_a_database_that_is_thawed_as_a_dump_begins_has_its_own_rights_in_it(
    host: EngineHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = snapshots.Snapshot.begin
    async with tenants(host, 2) as [tenant, target]:

        async def thawed(taken: snapshots.Snapshot, helper: helpers.Helper) -> None:
            await host.adapter.thaw(tenant)
            await begin(taken, helper)

        async with session_of(host, tenant) as session:
            await session.run("CREATE TABLE pets (n int)")
            await session.run("REVOKE INSERT ON pets FROM CURRENT_USER")
        await host.adapter.freeze(tenant)
        with monkeypatch.context() as patch:
            patch.setattr(snapshots.Snapshot, "begin", thawed)
            chunks, form, _ = await dumped(host, tenant)
        await host.adapter.load(target, form, streamed(chunks))
        async with session_of(host, target) as session:
            assert await refusal(session, "INSERT INTO pets VALUES (1)") == "42501"


async def over_or_waiting(dumping: asyncio.Task[Any], host: EngineHost, tenant: Tenant) -> bool:
    return dumping.done() or await lock_waits(host, tenant)


async def lock_waits(host: EngineHost, tenant: Tenant) -> bool:
    return await host.lock_waits(tenant.name) > 0


@pytest.mark.parametrize("ended", ["revoked", "frozen", "left"])
async def test_a_dump_that_ends_in_the_middle_leaves_nothing(host: EngineHost, ended: str) -> None:
    before = await host.catalog()
    async with tenants(host) as [tenant]:
        async with session_of(host, tenant) as session:
            await session.run("CREATE TABLE pets (t text)")
            await session.run("INSERT INTO pets SELECT repeat(md5(i::text), 100) FROM generate_series(1, 3000) i")
        if ended == "left":
            async with host.adapter.dumping(tenant) as dump:
                async for _ in dump.chunks():
                    break
        else:
            # Unless the tool was done already: then the dump is whole. Else another attempt may succeed.
            with suppress(HostUnavailable):
                async with host.adapter.dumping(tenant) as dump:
                    chunks = dump.chunks()
                    await anext(chunks)
                    await (host.adapter.revoke_access if ended == "revoked" else host.adapter.freeze)(tenant)
                    async for _ in chunks:
                        pass
                    await dump.contents()
        roles = {row[1] for row in await host.catalog() if row[0] == "role"}
        assert f"{tenant.name}_dump" not in roles
        _, _, told = await dumped(host, tenant)
        assert tables(told) == {'"public"."pets"': 3000}
    assert await host.catalog() == before


async def test_a_dump_whose_session_was_ended_may_succeed_the_next_time(host: EngineHost) -> None:
    """Also where the server says so in the middle of a table."""
    errors = (
        'pg_dump: error: Dumping the contents of table "pets" failed: PQgetResult() failed.\n'
        "pg_dump: detail: Error message from server: FATAL:  terminating connection due to administrator command\n"
    )
    connections = PostgresConnections(host.administrator)
    with pytest.raises(HostUnavailable):
        await answering(connections, errors)
    await answering(connections, errors.splitlines()[0])


async def test_what_was_added_to_an_extension_is_never_left_out_in_silence(host: EngineHost) -> None:
    """`pg_dump` leaves out all that belongs to an extension, and the rows of its tables."""
    async with tenants(host, 2) as [tenant, target]:
        async with session_of(host, tenant) as session:
            await session.run("CREATE EXTENSION citext")
            await session.run("CREATE TABLE orders (word citext)")
            await session.run("INSERT INTO orders VALUES ('x')")
            await session.run("CREATE FUNCTION worth() RETURNS int LANGUAGE sql AS 'SELECT 1'")
        for kind, name in (("TABLE", "orders"), ("FUNCTION", "worth")):
            async with session_of(host, tenant) as session:
                await session.run(f"ALTER EXTENSION citext ADD {kind} {name}")
            with pytest.raises(
                DumpRefused, match=rf"{kind.lower()} (public\.)?{name}.* was added to the extension citext"
            ):
                await dumped(host, tenant)
            with pytest.raises(DumpRefused):
                await host.adapter.contents(tenant)
            async with session_of(host, tenant) as session:
                await session.run(f"ALTER EXTENSION citext DROP {kind} {name}")
        chunks, form, told = await dumped(host, tenant)
        await host.adapter.load(target, form, streamed(chunks))
        assert await host.adapter.contents(target) == told
        assert tables(told) == {'"public"."orders"': 1}


async def test_more_sequences_than_a_dump_may_have(host: EngineHost, monkeypatch: pytest.MonkeyPatch) -> None:
    async with tenants(host) as [tenant]:
        async with session_of(host, tenant) as session:
            for number in range(3):
                await session.run(f"CREATE SEQUENCE s{number}")
        assert len((await dumped(host, tenant))[2]) >= 3
        for module in (dump, snapshots):
            monkeypatch.setattr(module, "MOST_OBJECTS", 2)
        with pytest.raises(DumpRefused, match="sequences"):
            await dumped(host, tenant)
        with pytest.raises(DumpRefused, match="sequences"):
            await host.adapter.contents(tenant)


async def test_a_login_that_is_refused_for_now_fails_no_dump(host: EngineHost, tmp_path: Path) -> None:
    """A pause takes the login of a dump's account too."""
    connections, tools = PostgresConnections(host.administrator), DumpTools()
    async with tenants(host) as [tenant], helpers.helping(connections, tenant, helpers.DUMP) as helper:
        async with connections.admin() as connection:
            await connection.execute(f'ALTER ROLE "{helper.name}" NOLOGIN')
        with pytest.raises(HostUnavailable, match="not permitted to log in"):
            async with snapshot(connections, tenant, helper, alone=True):
                pass
        _, major = await server_version(connections)
        folder, _ = await tools.folder(major)
        async with (
            environment(
                connections.address, database=tenant.name, user=helper.name, password=helper.password, settings={}
            ) as environ,
            RunningTool(folder / "pg_dump", ["--no-password"], environ, reads=False) as running,
        ):
            assert await running.end() != 0
        with pytest.raises(HostUnavailable):
            await answering(connections, running.errors)
    await connections.close()


async def test_a_frozen_tenants_dump_has_none_of_what_freezes_it(host: EngineHost) -> None:
    async with tenants(host, 2) as [tenant, target]:
        async with session_of(host, tenant) as session:
            await session.run("CREATE TABLE pets (n int)")
            await session.run("CREATE FUNCTION secret() RETURNS int LANGUAGE sql AS 'SELECT 1'")
            await session.run("REVOKE EXECUTE ON FUNCTION secret FROM PUBLIC")
        await host.adapter.freeze(tenant)
        chunks, form, told = await dumped(host, tenant)
        assert len(tables(told)) == 1
        await host.adapter.load(target, form, streamed(chunks))
        assert await host.adapter.contents(target) == told
        async with session_of(host, target) as session:
            await session.run("INSERT INTO pets VALUES (1)")
            assert await session.run("SELECT has_function_privilege('public', 'secret()', 'EXECUTE')") == [(False,)]


async def test_what_a_dead_process_left_of_a_dump_is_removed(host: EngineHost) -> None:
    before = await host.catalog()
    async with tenants(host) as [tenant]:
        async with session_of(host, tenant) as session:
            await session.run("CREATE TABLE pets (n int)")
        await host.adapter.revoke_access(tenant)
        closed = await host.catalog()

        async def dump(adapter: EngineAdapter) -> None:
            async with adapter.dumping(tenant) as begun:
                async for _ in begun.chunks():
                    pass
                await begun.contents()

        cut = 0
        async for _ in cut_often(host, dump, 19):
            cut += 1
            if cut % 2:
                await host.adapter.end_dumps([tenant.name])
                assert await host.catalog() == closed
            await dump(host.adapter)
            assert await host.catalog() == closed
        assert await host.adapter.end_dumps([tenant.name]) == 0
    assert await host.catalog() == before


async def test_a_process_that_dies_in_a_replacement_loses_neither_database(host: EngineHost) -> None:
    before = await host.catalog()
    async with tenants(host, limits=EngineLimits(connections=7)) as [tenant]:
        made = [await marked(host, tenant, "0")]
        await host.adapter.revoke_access(tenant)
        scratches: list[Tenant] = []

        async def next_scratch() -> None:
            scratches.append(new_tenant())
            await host.adapter.create(scratches[-1], LIMITS)
            made.append(await marked(host, scratches[-1], str(len(made))))

        await next_scratch()
        async for _ in cut_often(host, lambda adapter: adapter.replace(tenant, scratches[-1]), 9):
            await host.adapter.replace(tenant, scratches[-1])
            assert tables(await host.adapter.contents(tenant)) == {made[-1]: 0}
            assert tables(await host.adapter.contents(scratches[-1])) == {made[-2]: 0}
            await host.adapter.destroy(scratches[-1])
            await next_scratch()
        await host.adapter.destroy(scratches[-1])
        await host.adapter.restore_access(tenant)
        await host.adapter.verify_login(tenant)
    assert await host.catalog() == before


async def marked(host: EngineHost, tenant: Tenant, mark: str) -> str:
    async with session_of(host, tenant) as session:
        await session.run(f"CREATE TABLE t{mark} (n int)")
    return f'"public"."t{mark}"'


async def test_a_process_that_dies_in_a_clearing_leaves_a_database_that_is_cleared_next(host: EngineHost) -> None:
    before = await host.catalog()
    async with tenants(host) as [tenant]:
        async for _ in cut_often(host, lambda adapter: adapter.clear(tenant), 5):
            await host.adapter.clear(tenant)
            assert tables(await host.adapter.contents(tenant)) == {}
            await host.adapter.verify_login(tenant)
    assert await host.catalog() == before


async def test_a_dump_that_is_cut_off_or_changed_is_not_loaded(host: EngineHost) -> None:
    async with tenants(host, 2) as [tenant, target]:
        async with session_of(host, tenant) as session:
            await session.run("CREATE TABLE pets (n int)")
            await session.run("INSERT INTO pets VALUES (1)")
        chunks, form, _ = await dumped(host, tenant)
        whole = b"".join(chunks)
        for damaged in (whole[:-20], whole[: len(whole) // 2], b"x" + whole[1:], b""):
            with pytest.raises(LoadRefused):
                await host.adapter.load(target, form, streamed([damaged]))
            await host.adapter.clear(target)
        with pytest.raises(LoadRefused, match="mysql"):
            await host.adapter.load(target, msgspec.structs.replace(form, flavour="mysql"), streamed(chunks))


async def test_rows_are_counted_wherever_the_stream_is_cut(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        async with session_of(host, tenant) as session:
            # The tool's numbers of tables are above 2,815 then: none of them looks like the end of a line.
            await session.run(
                "DO $$ BEGIN FOR n IN 1..300 LOOP EXECUTE 'CREATE DOMAIN d' || n || ' AS int'; END LOOP; END $$"
            )
            for table in ("cats", "dogs", "eels"):
                await session.run(f"CREATE TABLE {table} (n int)")
                await session.run(f"INSERT INTO {table} SELECT generate_series(1000, 1029)")
        whole = b"".join((await dumped(host, tenant))[0])
    ends = [found.end() for found in re.finditer(rb"\\\.\n\n\n", whole)]
    assert len(ends) == 3
    for cut in (cut for end in ends for cut in range(end - 12, end + 20)):
        archive = Archive()
        for piece in (whole[:cut], whole[cut:]):
            archive.feed(piece)
        archive.finish()
        assert set(archive.rows.values()) == {30}, whole[cut - 10 : cut]


async def test_what_can_not_be_loaded_is_named(host: EngineHost) -> None:
    async with tenants(host, 2) as [tenant, target]:
        async with session_of(host, target) as session:
            await session.run("CREATE TABLE pets (n int)")
        async with session_of(host, tenant) as session:
            await session.run("CREATE TABLE pets (n int)")
        chunks, form, _ = await dumped(host, tenant)
        with pytest.raises(LoadRefused, match=re.escape("public.pets")):
            await host.adapter.load(target, form, streamed(chunks))


async def test_a_host_that_is_full_refuses_nothing_for_good(host: EngineHost) -> None:
    async with tenants(host, 2) as [tenant, target]:
        async with session_of(host, tenant) as session:
            # A load meets the server's own words.
            await session.run(
                "CREATE FUNCTION fits() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN"
                " IF session_user LIKE '%restore' THEN RAISE"
                " 'could not extend file: No space left on device'; END IF; RETURN true; END $$"
            )
            await session.run("CREATE TABLE pets (n int CHECK (fits()))")
            await session.run("INSERT INTO pets VALUES (1)")
        chunks, form, _ = await dumped(host, tenant)
        with pytest.raises(HostFull, match="No space left"):
            await host.adapter.load(target, form, streamed(chunks))


async def test_what_a_dump_defines_runs_with_the_tenants_rights(host: EngineHost) -> None:
    async with tenants(host, 2) as [tenant, target]:
        async with session_of(host, tenant) as session:
            await session.run("CREATE TABLE who (is_now text, reads_all bool)")
            await session.run(
                "CREATE FUNCTION note() RETURNS void LANGUAGE sql AS $$ INSERT INTO public.who"
                " SELECT current_user, rolbypassrls FROM pg_roles WHERE rolname = session_user $$"
            )
            await session.run(
                "CREATE FUNCTION told(n int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS"
                " $$ BEGIN PERFORM public.note(); RETURN n; END $$"
            )
            await session.run("CREATE TABLE pets (n int)")
            await session.run("INSERT INTO pets VALUES (1)")
            await session.run("CREATE INDEX ON pets (told(n))")
            await session.run("DELETE FROM who")
        chunks, form, told = await dumped(host, tenant)
        assert tables(told)['"public"."who"'] == 0, "a dump doesn't run it"
        await host.adapter.load(target, form, streamed(chunks))
        async with session_of(host, target) as session:
            assert set(await session.run("SELECT is_now, reads_all FROM who")) == {(target.name, False)}


async def test_an_account_that_was_given_something_is_removed_all_the_same(host: EngineHost) -> None:
    async with tenants(host) as [tenant], session_of(host, tenant) as session:
        await session.run("CREATE TABLE pets (n int)")
        async with host.adapter.dumping(tenant) as dump:
            await session.run(f"GRANT SELECT ON pets TO {tenant.name}_dump")
            await session.run(f"ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO {tenant.name}_dump")
            assert [chunk async for chunk in dump.chunks()]
        assert await as_root(host, f"SELECT rolname FROM pg_roles WHERE rolname = '{tenant.name}_dump'") == []


async def test_a_tenant_can_not_end_its_dump_nor_become_its_account(host: EngineHost) -> None:
    async with tenants(host) as [tenant], session_of(host, tenant) as session, host.adapter.dumping(tenant) as dump:
        for statement in (
            f"SET ROLE {tenant.name}_dump",
            f"ALTER ROLE {tenant.name}_dump PASSWORD 'known'",
            f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{tenant.name}_dump'",
        ):
            with pytest.raises(Exception, match="42501"):
                await session.run(statement)
        assert [chunk async for chunk in dump.chunks()]
