"""Every adapter does what its interface says: made whole, found again after a crash, limited, measured, removed."""

import asyncio

import pytest

from app.core import ids
from app.engines.base import EngineError, EngineLimits, LoginRefused, NameTaken
from tests.engines.harness import LIMITS, EngineHost, RefusedError, as_root, new_tenant, session_of, tenants
from tests.support.waiting import is_running, until

MEGABYTES = 5
TOO_MANY = {"53300", "1226"}


async def test_a_created_tenant_logs_in_and_works(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        await host.adapter.verify_login(tenant)
        async with session_of(host, tenant) as session:
            await session.run("CREATE TABLE pets (name varchar(20) PRIMARY KEY)")
            await session.run("INSERT INTO pets VALUES ('Rex')")
            await session.run("CREATE VIEW dogs AS SELECT * FROM pets")
            assert await session.run("SELECT name FROM dogs") == [("Rex",)]
            tables = await session.run(
                "SELECT table_name FROM information_schema.tables WHERE table_name LIKE '%check'"
            )
            assert tables == [], "the check leaves nothing behind"


async def test_every_method_can_be_repeated(host: EngineHost) -> None:
    tenant = new_tenant()
    for _ in range(2):
        await host.adapter.create(tenant, LIMITS)
        await host.adapter.verify_login(tenant)
    for _ in range(2):
        await host.adapter.set_limits(tenant, LIMITS)
    for _ in range(2):
        await host.adapter.revoke_access(tenant)
    for _ in range(2):
        await host.adapter.restore_access(tenant)
    await host.adapter.verify_login(tenant)
    for _ in range(2):
        await host.adapter.destroy(tenant)
    await host.adapter.revoke_access(tenant)
    with pytest.raises(EngineError):
        await host.adapter.restore_access(tenant)
    with pytest.raises(EngineError):
        await host.adapter.set_limits(tenant, LIMITS)


async def test_create_finishes_what_a_crash_left(host: EngineHost) -> None:
    for part in host.parts:
        if "revoked" in part:
            continue
        tenant = new_tenant()
        await host.make_part(part, tenant)
        found = {one.name: one for one in await host.adapter.list_tenants()}
        assert tenant.name in found, part
        await host.adapter.create(tenant, LIMITS)
        await host.adapter.verify_login(tenant)
        await host.adapter.destroy(tenant)


async def test_destroy_removes_what_a_crash_left(host: EngineHost) -> None:
    before = await host.catalog()
    for part in host.parts:
        tenant = new_tenant()
        await host.make_part(part, tenant)
        await host.adapter.destroy(tenant)
        assert await host.catalog() == before, part


async def test_create_gives_the_password_and_limits_of_the_last_call(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        renewed = new_tenant(name=tenant.name, marker=tenant.marker)
        await host.adapter.create(renewed, EngineLimits(connections=1))
        with pytest.raises(LoginRefused):
            await host.adapter.verify_login(tenant)
        async with session_of(host, renewed):
            with pytest.raises(RefusedError):
                await host.login(renewed)


async def test_a_late_create_does_not_lift_a_revocation(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        await host.adapter.revoke_access(tenant)
        revoked = await host.catalog()
        await host.adapter.create(tenant, LIMITS)
        assert await host.catalog() == revoked
        with pytest.raises(LoginRefused):
            await host.adapter.verify_login(tenant)
        await host.adapter.restore_access(tenant)
        await host.adapter.verify_login(tenant)


async def test_a_half_made_tenant_that_was_revoked_is_whole_after_restore(host: EngineHost) -> None:
    tenant = new_tenant()
    await host.make_part(next(part for part in host.parts if "revoked" in part), tenant)
    await host.adapter.create(tenant, LIMITS)
    with pytest.raises(RefusedError):
        await host.login(tenant)
    await host.adapter.restore_access(tenant)
    await host.adapter.verify_login(tenant)
    await host.adapter.destroy(tenant)


@pytest.mark.parametrize("part", ["role", "database", "both"])
async def test_strangers_are_never_touched(host: EngineHost, part: str) -> None:
    tenant = new_tenant()
    await host.make_stranger(tenant.name, part)
    before = await host.catalog()
    for call in (
        host.adapter.create(tenant, LIMITS),
        host.adapter.set_limits(tenant, LIMITS),
        host.adapter.revoke_access(tenant),
        host.adapter.restore_access(tenant),
        host.adapter.destroy(tenant),
    ):
        with pytest.raises(NameTaken):
            await call
    assert await host.catalog() == before
    assert tenant.name not in {one.name for one in await host.adapter.list_tenants()}
    await host.drop_stranger(tenant.name)


async def test_another_marker_is_a_stranger(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        impostor = new_tenant(name=tenant.name)
        before = await host.catalog()
        for call in (
            host.adapter.create(impostor, LIMITS),
            host.adapter.set_limits(impostor, LIMITS),
            host.adapter.revoke_access(impostor),
            host.adapter.restore_access(impostor),
            host.adapter.destroy(impostor),
        ):
            with pytest.raises(NameTaken):
                await call
        assert await host.catalog() == before
        await host.adapter.verify_login(tenant)


async def test_the_connection_limit_holds_at_its_number(host: EngineHost) -> None:
    async with tenants(host, limits=EngineLimits(connections=3)) as [tenant]:
        held = [await host.login(tenant) for _ in range(3)]
        with pytest.raises(RefusedError) as refused:
            await host.login(tenant)
        assert refused.value.code in TOO_MANY
        await host.adapter.set_limits(tenant, EngineLimits(connections=4))
        held.append(await host.login(tenant))
        await host.adapter.set_limits(tenant, EngineLimits(connections=2))
        assert [await session.run("SELECT 1") for session in held] == [[(1,)]] * 4, "open sessions stay"
        with pytest.raises(RefusedError):
            await host.login(tenant)

        async def four_are_there() -> bool:
            return (await host.adapter.measure([tenant.name]))[tenant.name].connections == 4

        # The service itself still gets in. A login that was refused is listed, too, until its connection is closed.
        await until(four_are_there)
        for session in held:
            await session.close()


def test_no_limit_at_all_is_refused() -> None:
    for connections in (0, -1):
        with pytest.raises(ValueError, match="at least 1"):
            EngineLimits(connections=connections)


async def test_destroy_leaves_nothing(host: EngineHost) -> None:
    await host.adapter.list_tenants()  # makes what belongs to the host
    before = await host.catalog()
    async with tenants(host, 2) as [tenant, other]:
        session = await host.login(tenant)
        await session.run("CREATE TABLE pets (name varchar(20) PRIMARY KEY)")
        whole = await host.catalog()
        assert len(whole) > len(before)
        await host.adapter.destroy(tenant)  # its session is open
        with pytest.raises(ConnectionError):
            await session.run("SELECT 1")
        await host.adapter.verify_login(other)
    assert await host.catalog() == before


async def test_measure_follows_the_data(host: EngineHost) -> None:
    async with tenants(host, 2) as [tenant, empty]:
        session = await host.login(tenant)
        await session.run("CREATE TABLE loaded (t text)")
        before = await host.adapter.measure([tenant.name, empty.name, "tnobody"])
        await session.run(host.load_statement(MEGABYTES))
        after = await host.adapter.measure([tenant.name, empty.name, "tnobody"])
        assert set(after) == {tenant.name, empty.name}
        grown = after[tenant.name].storage_bytes - before[tenant.name].storage_bytes
        assert MEGABYTES * 2**20 <= grown < 4 * MEGABYTES * 2**20
        assert after[empty.name].storage_bytes <= before[empty.name].storage_bytes + 2**20
        assert (after[tenant.name].connections, after[empty.name].connections) == (1, 0)
        await session.close()
        assert await host.adapter.measure([]) == {}


@pytest.mark.parametrize("engine_server", ["oracle"], indirect=True, scope="session")
async def test_what_lies_in_the_servers_own_file_is_measured_too(host: EngineHost) -> None:
    """MySQL lets anybody put a table there, with no file of its own, and turn its statistics off."""
    async with tenants(host) as [tenant], session_of(host, tenant) as session:
        await session.run("CREATE TABLE loaded (t text) STATS_AUTO_RECALC=0 TABLESPACE=innodb_system")
        await session.run(host.load_statement(MEGABYTES))
        measured = (await host.adapter.measure([tenant.name]))[tenant.name].storage_bytes
        assert MEGABYTES * 2**20 <= measured < 4 * MEGABYTES * 2**20
        # Whoever locks it holds up nobody's measurement for long, and hides nothing.
        await session.run("LOCK TABLES loaded WRITE")
        assert (await host.adapter.measure([tenant.name]))[tenant.name].storage_bytes >= measured


async def test_list_tenants_shows_ours_whole_and_in_part(host: EngineHost) -> None:
    part = new_tenant()
    async with tenants(host) as [whole]:
        await host.make_part(host.parts[0], part)
        found = {one.name: one for one in await host.adapter.list_tenants()}
        assert (found[whole.name].marker, found[whole.name].has_database, found[whole.name].has_role) == (
            whole.marker,
            True,
            True,
        )
        assert found[part.name].marker == part.marker
        assert found[part.name].has_database is False
        await host.adapter.destroy(part)


async def test_a_tenant_that_wrecked_its_own_place_is_mended_and_removed(host: EngineHost) -> None:
    statements = {
        "postgres": ["DROP OWNED BY current_user", f"ALTER ROLE current_user PASSWORD '{ids.engine_password()}'"],
        "mysql": ["DROP DATABASE {name}", f"SET PASSWORD = '{ids.engine_password()}'"],
        "mariadb": ["DROP DATABASE {name}", f"SET PASSWORD = PASSWORD('{ids.engine_password()}')"],
    }[host.flavour]
    before = await host.catalog()
    async with tenants(host) as [tenant]:
        async with session_of(host, tenant) as session:
            for statement in statements:
                await session.run(statement.format(name=tenant.name))
        await host.adapter.measure([tenant.name])
        await host.adapter.set_limits(tenant, LIMITS)
        await host.adapter.revoke_access(tenant)
        await host.adapter.restore_access(tenant)
        await host.adapter.create(tenant, LIMITS)
        await host.adapter.verify_login(tenant)
        async with session_of(host, tenant) as session:
            for statement in statements:
                await session.run(statement.format(name=tenant.name))
    assert await host.catalog() == before


async def test_twenty_at_once_and_two_calls_for_one(host: EngineHost) -> None:
    before = await host.catalog()
    made = [new_tenant() for _ in range(20)]
    # Each twice: an activity that lost its worker runs again while the first call is still under way.
    await asyncio.gather(*(host.adapter.create(tenant, LIMITS) for tenant in [*made, *made]))
    await asyncio.gather(*(host.adapter.verify_login(tenant) for tenant in made))
    assert {tenant.name for tenant in made} <= {one.name for one in await host.adapter.list_tenants()}
    await asyncio.gather(
        *(host.adapter.revoke_access(tenant) for tenant in made),
        *(host.adapter.destroy(tenant) for tenant in [*made, *made]),
    )
    assert await host.catalog() == before


async def test_a_client_that_takes_all_connections_keeps_its_database_from_nothing(host: EngineHost) -> None:
    """It has its credentials before the database is made, and may come in before they are proven."""
    limits = EngineLimits(connections=1)
    async with tenants(host, limits=limits) as [tenant], session_of(host, tenant) as session:
        await host.adapter.create_verified(tenant, limits)
        await session.run("CREATE TABLE mine (n int)")


@pytest.mark.parametrize("engine_server", ["postgres"], indirect=True, scope="session")
async def test_no_table_of_the_tenants_is_in_the_way_of_the_proof(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        async with session_of(host, tenant) as session:
            await session.run("CREATE TABLE headwater_check (mine varchar(20))")
        await host.adapter.create_verified(tenant, LIMITS)


async def test_wrong_credentials_are_refused(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        for changes in ({"password": ids.engine_password()}, {"name": ids.engine_name()}):
            wrong = new_tenant(**{"name": tenant.name, "password": tenant.password} | changes)
            with pytest.raises(LoginRefused) as refused:
                await host.adapter.verify_login(wrong)
            assert wrong.password not in str(refused.value)


async def test_logging_in_touches_nothing(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        async with session_of(host, tenant) as session:
            await session.run("CREATE TABLE headwater_check (mine varchar(20))")
            await session.run("INSERT INTO headwater_check VALUES ('kept')")
        await host.adapter.log_in(tenant)
        async with session_of(host, tenant) as session:
            assert await session.run("SELECT mine FROM headwater_check") == [("kept",)]
        await host.adapter.revoke_access(tenant)
        with pytest.raises(LoginRefused):
            await host.adapter.log_in(tenant)


async def test_names_are_checked_before_they_reach_sql(host: EngineHost) -> None:
    for name in ("", "T1", "t_1", "t%", "1t", "t1'", 't1"', "t1;", "t" * 33, "t1\n"):
        with pytest.raises(ValueError, match="name"):
            await host.adapter.create(new_tenant(name=name), LIMITS)
    for password in ("with a \\", "with a\n", "ünprintable"):
        with pytest.raises(ValueError, match="password"):
            await host.adapter.create(new_tenant(password=password), LIMITS)


async def test_quotes_in_a_password_stay_in_it(host: EngineHost) -> None:
    tenant = new_tenant(password='it\'s "quoted"; -- `so` 100%s')
    try:
        await host.adapter.create(tenant, LIMITS)
        await host.adapter.verify_login(tenant)
    finally:
        await host.adapter.destroy(tenant)


async def test_an_idle_pool_survives_its_sessions_being_ended(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        ended = await _administrators_sessions(host)
        assert ended
        for number in ended:
            await as_root(
                host, f"SELECT pg_terminate_backend({number})" if host.flavour == "postgres" else f"KILL {number}"
            )
        await until(lambda: _are_over(host, ended))
        # What was sent before this answer has come in, the ends of those connections among it.
        await as_root(host, "SELECT 1")
        await host.adapter.set_limits(tenant, EngineLimits(connections=1))
        assert await _administrators_sessions(host)
        async with session_of(host, tenant):
            with pytest.raises(RefusedError):
                await host.login(tenant)


async def _administrators_sessions(host: EngineHost) -> set[int]:
    user = host.administrator.user
    statement = f"SELECT id FROM information_schema.processlist WHERE user = '{user}'"
    if host.flavour == "postgres":
        statement = f"SELECT pid FROM pg_stat_activity WHERE usename = '{user}'"
    return {int(number) for (number,) in await as_root(host, statement)}


async def _are_over(host: EngineHost, sessions: set[int]) -> bool:
    if host.flavour == "postgres":  # which forgets a session a moment before its process ends, and the connection
        return not any(is_running(pid) for pid in sessions)
    return not sessions & await _administrators_sessions(host)
