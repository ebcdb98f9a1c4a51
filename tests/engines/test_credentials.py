"""Every engine changes a tenant's credentials without an outage, and gives it users that may no more than they say."""

import asyncio
from functools import partial

import msgspec
import pytest

from app.engines.base import Access, EngineError, EngineLimits, FoundTenant, Login, LoginRefused, Tenant
from tests.engines.accounts import accepted, logging_in_as, login_of, next_login, rotated, session_as, user_of
from tests.engines.harness import EngineHost, RefusedError, new_tenant, refusal, session_of, tenants
from tests.support.waiting import ended, until

TOO_MANY = {"53300", "1226"}


async def test_two_credentials_work_until_the_first_is_retired(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        old, new = login_of(tenant), next_login(host, tenant)
        async with session_of(host, tenant) as session:
            await session.run("CREATE TABLE kept (n INT)")
        for _ in range(2):  # an answer may be lost
            await host.adapter.add_credential(tenant, new)
        assert [await accepted(host, tenant, login) for login in (old, new)] == [True, True]
        async with session_as(host, tenant, old) as before, session_as(host, tenant, new) as after:
            await after.run("CREATE TABLE newer (n INT)")
            await before.run("INSERT INTO newer VALUES (1)")
            await after.run("INSERT INTO kept VALUES (1)")
            await before.run("DROP TABLE newer")
            for _ in range(2):
                await host.adapter.retire_credential(tenant, new, old, end_sessions=False)
            assert [await accepted(host, tenant, login) for login in (old, new)] == [False, True]
            assert await after.run("SELECT n FROM kept") == [(1,)]
            if host.adapter.distinguishes_sessions:
                with pytest.raises(ConnectionError):
                    await before.run("SELECT 1")
        moved = logging_in_as(tenant, new)
        await host.adapter.verify_login(moved)
        await host.adapter.log_in(moved)


async def test_a_rotation_can_be_taken_back(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        old, new = login_of(tenant), next_login(host, tenant)
        await host.adapter.add_credential(tenant, new)
        for _ in range(2):
            await host.adapter.retire_credential(tenant, old, new, end_sessions=True)
        assert [await accepted(host, tenant, login) for login in (old, new)] == [True, False]
        await rotated(host, tenant, 2)


async def test_nothing_is_retired_for_credentials_that_are_not_there(host: EngineHost) -> None:
    if not host.adapter.rotation_renames:
        pytest.skip("a retired password is told from the other by its number alone")
    async with tenants(host) as [tenant]:
        with pytest.raises(EngineError):
            await host.adapter.retire_credential(tenant, next_login(host, tenant), login_of(tenant), end_sessions=True)
        await host.adapter.log_in(tenant)


async def test_everything_stays_the_tenants_through_rotations(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        made = tenant
        for number in range(1, 4):
            made = await rotated(host, made, number)
            async with session_as(host, made, login_of(made)) as session:
                await session.run(f"CREATE TABLE t{number} (n INT)")
                for earlier in range(1, number + 1):
                    await session.run(f"ALTER TABLE t{earlier} ADD COLUMN c{number} INT")
        async with host.adapter.script_session(made, 10) as script:
            await script.begin()
            await script.run("DROP TABLE t1", 10)
            await script.commit()
        async with session_as(host, made, login_of(made)) as session:
            assert await refusal(session, "SELECT 1 FROM t1")
            await session.run("DROP TABLE t2")


async def test_the_service_revokes_freezes_and_restores_all_accounts(host: EngineHost) -> None:
    before = await host.catalog()
    async with tenants(host) as [tenant]:
        new, reader, writer = (
            next_login(host, tenant),
            user_of(tenant, Access.READ_ONLY, 1),
            user_of(tenant, Access.READ_WRITE, 2),
        )
        everyone = [login_of(tenant), new, reader, writer]
        async with session_of(host, tenant) as session:
            await session.run("CREATE TABLE kept (n INT)")
        await host.adapter.add_credential(tenant, new)
        for user in (reader, writer):
            await host.adapter.put_user(tenant, user)
        writers = [login for login in everyone if login is not reader]

        await host.adapter.freeze(tenant)
        for login in everyone:
            async with session_as(host, tenant, login) as session:
                assert await refusal(session, "INSERT INTO kept VALUES (1)"), login
                assert await refusal(session, "CREATE TABLE mine (n INT)"), login
                await session.run("SELECT n FROM kept")
        await host.adapter.thaw(tenant)

        held = [await host.login(_client(tenant, login), database=tenant.name) for login in everyone]
        await host.adapter.revoke_access(tenant)
        for session in held:
            with pytest.raises(ConnectionError):
                await session.run("SELECT 1")
        assert not any([await accepted(host, tenant, login) for login in everyone])
        # Who has just been refused may be shown for a moment.
        await until(partial(_no_session_of, host, tenant))
        assert not _found(await host.adapter.list_tenants(), tenant).admits
        await host.adapter.restore_access(tenant)
        assert all([await accepted(host, tenant, login) for login in everyone])
        # A login counts until the server has ended its session.
        await until(partial(_no_session_of, host, tenant))
        assert _found(await host.adapter.list_tenants(), tenant).admits
        for login in writers:
            async with session_as(host, tenant, login) as session:
                await session.run("INSERT INTO kept VALUES (1)")
    assert await host.catalog() == before, "nothing is left of any"


def _client(tenant: Tenant, login: Login) -> Tenant:
    return Tenant(name=login.name, password=login.password, marker=tenant.marker)


async def _no_session_of(host: EngineHost, tenant: Tenant) -> bool:
    return tenant.name not in await host.adapter.sessions([tenant.name])


def _found(found: list[FoundTenant], tenant: Tenant) -> FoundTenant:
    return next(one for one in found if one.name == tenant.name)


async def test_what_was_retired_stays_so_when_access_is_restored(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        old = login_of(tenant)
        moved = await rotated(host, tenant)
        await host.adapter.revoke_access(moved)
        await host.adapter.create(moved, EngineLimits(connections=4))  # a late one
        with pytest.raises(LoginRefused):
            await host.adapter.log_in(moved)
        await host.adapter.restore_access(moved)
        assert [await accepted(host, tenant, login) for login in (old, login_of(moved))] == [False, True]
        await host.adapter.repair(moved)
        await host.adapter.set_limits(moved, EngineLimits(connections=3))
        await host.adapter.create(moved, EngineLimits(connections=3))
        assert [await accepted(host, tenant, login) for login in (old, login_of(moved))] == [False, True]


async def test_rotations_and_users_of_a_revoked_tenant_wait_for_its_return(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        old, new = login_of(tenant), next_login(host, tenant)
        reader, gone = user_of(tenant, Access.READ_ONLY, 1), user_of(tenant, Access.READ_WRITE, 2)
        async with session_of(host, tenant) as session:
            await session.run("CREATE TABLE kept (n INT)")
        await host.adapter.put_user(tenant, gone)
        await host.adapter.revoke_access(tenant)
        await host.adapter.add_credential(tenant, new)
        await host.adapter.put_user(tenant, reader)
        await host.adapter.remove_user(tenant, gone.name)
        await host.adapter.retire_credential(tenant, new, old, end_sessions=True)
        assert not any([await accepted(host, tenant, login) for login in (old, new, reader, gone)])
        await host.adapter.restore_access(logging_in_as(tenant, new))
        assert [await accepted(host, tenant, login) for login in (old, new, reader, gone)] == [False, True, True, False]
        async with session_as(host, tenant, reader) as session:
            assert await session.run("SELECT n FROM kept") == []


READER_REFUSED = (
    "INSERT INTO kept VALUES (2)",
    "UPDATE kept SET n = 3",
    "DELETE FROM kept",
    "TRUNCATE TABLE kept",
    "DROP TABLE kept",
    "ALTER TABLE kept ADD COLUMN m INT",
    "CREATE TABLE mine (n INT)",
    "CREATE TABLE mine AS SELECT * FROM kept",
    "CREATE TEMPORARY TABLE mine (n INT)",
    "CREATE VIEW mine AS SELECT 1",
)


async def test_a_reader_reads_what_anybody_made_and_writes_nothing(host: EngineHost) -> None:
    async with tenants(host, 2) as [tenant, other]:
        reader, writer = user_of(tenant, Access.READ_ONLY, 1), user_of(tenant, Access.READ_WRITE, 2)
        async with session_of(host, tenant) as session:
            for statement in ("CREATE TABLE kept (n INT)", "INSERT INTO kept VALUES (1)"):
                await session.run(statement)
        for _ in range(2):
            await host.adapter.put_user(tenant, reader)
        await host.adapter.put_user(tenant, writer)
        moved = await rotated(host, tenant)
        async with session_as(host, tenant, writer) as session:
            await session.run("CREATE TABLE by_user (n INT)")
            await session.run("CREATE VIEW seen AS SELECT n + 1 AS n FROM kept")
        async with session_as(host, moved, login_of(moved)) as session:
            await session.run("CREATE TABLE by_login (n INT)")
        async with session_as(host, tenant, reader) as session:
            assert await session.run("SELECT n FROM kept") == [(1,)]
            assert await session.run("SELECT n FROM seen") == [(2,)]
            for table in ("by_user", "by_login"):
                assert await session.run(f"SELECT n FROM {table}") == []
            for statement in READER_REFUSED:
                assert await refusal(session, statement), statement
        with pytest.raises(RefusedError):
            await host.login(_client(tenant, reader), database=other.name)


async def test_a_removed_user_is_refused_and_its_work_stays(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        writer = user_of(tenant)
        await host.adapter.put_user(tenant, writer)
        async with session_as(host, tenant, writer) as session:
            await session.run("CREATE TABLE kept (n INT)")
            await session.run("INSERT INTO kept VALUES (1)")
            for _ in range(2):
                await host.adapter.remove_user(tenant, writer.name)
            with pytest.raises(ConnectionError):
                await session.run("SELECT 1")
        assert not await accepted(host, tenant, writer)
        async with session_of(host, tenant) as session:
            assert await session.run("SELECT n FROM kept") == [(1,)]
            await session.run("DROP TABLE kept")


async def test_a_user_takes_another_password_and_other_rights(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        user = user_of(tenant)
        await host.adapter.put_user(tenant, user)
        async with session_as(host, tenant, user) as session:
            await session.run("CREATE TABLE kept (n INT)")
        lowered = msgspec.structs.replace(user, password="Another-passw0rd", access=Access.READ_ONLY)
        await host.adapter.put_user(tenant, lowered)
        assert not await accepted(host, tenant, user)
        async with session_as(host, tenant, lowered) as session:
            assert await session.run("SELECT n FROM kept") == []
            assert await refusal(session, "INSERT INTO kept VALUES (1)")
        await host.adapter.put_user(tenant, user)
        async with session_as(host, tenant, user) as session:
            await session.run("INSERT INTO kept VALUES (1)")


async def test_all_accounts_keep_the_limit_together(host: EngineHost) -> None:
    async with tenants(host, limits=EngineLimits(connections=4)) as [tenant]:
        user = user_of(tenant, connections=1)
        await host.adapter.put_user(tenant, user)
        old, new = login_of(tenant), next_login(host, tenant)
        await host.adapter.add_credential(tenant, new)
        await host.adapter.log_in_as(tenant, new)
        await until(partial(_has_no_session, host, tenant))
        order = (old, new, old, user)
        held = [await host.login(_client(tenant, login), database=tenant.name) for login in order]
        for login in (old, new, user):
            with pytest.raises(RefusedError) as refused:
                await host.login(_client(tenant, login), database=tenant.name)
            assert refused.value.code in TOO_MANY
        # The service itself gets in all the same.
        await host.adapter.make_reader(tenant, "Reader-passw0rd")
        await until(partial(_counts_four, host, tenant))
        for session in held:
            await session.close()
        await host.adapter.retire_credential(tenant, new, old, end_sessions=True)
        moved = logging_in_as(tenant, new)
        await until(partial(_has_no_session, host, tenant))
        held = [await host.login(_client(moved, new), database=tenant.name) for _ in range(3)]
        with pytest.raises(RefusedError):
            await host.login(_client(moved, new), database=tenant.name)
        for session in held:
            await session.close()


async def _counts_four(host: EngineHost, tenant: Tenant) -> bool:
    """A login that was refused is counted, too, until its connection is closed."""
    measured = (await host.adapter.measure([tenant.name]))[tenant.name].connections
    return measured == sum((await host.adapter.open_sessions(tenant)).values()) == 4


async def _has_no_session(host: EngineHost, tenant: Tenant) -> bool:
    return not any((await host.adapter.open_sessions(tenant)).values())


async def test_sessions_are_counted_by_account(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        user = user_of(tenant, Access.READ_ONLY)
        await host.adapter.put_user(tenant, user)
        assert await host.adapter.open_sessions(tenant) == {tenant.name: 0, user.name: 0}
        async with session_of(host, tenant), session_as(host, tenant, user):
            assert await host.adapter.open_sessions(tenant) == {tenant.name: 1, user.name: 1}
            assert len((await host.adapter.sessions([tenant.name]))[tenant.name]) == 2
        assert await host.adapter.open_sessions(new_tenant()) == {}


async def test_names_of_others_are_not_taken(host: EngineHost) -> None:
    async with tenants(host, 2) as [tenant, other]:
        for name in (other.name, f"{other.name}_u1", f"{tenant.name}_ro", f"{tenant.name}_u", f"{tenant.name}_u1'"):
            with pytest.raises(ValueError, match="named"):
                await host.adapter.put_user(tenant, msgspec.structs.replace(user_of(tenant), name=name))
            with pytest.raises(ValueError, match="named"):
                await host.adapter.remove_user(tenant, name)
        await host.adapter.log_in(other)


class Client:
    """Logs in with the newest credentials that it was told and works, over and over, until cancelled."""

    def __init__(self) -> None:
        self.logins = 0

    async def go_on(self, host: EngineHost, tenant: Tenant, told: list[Login]) -> None:
        while True:
            async with session_as(host, tenant, told[-1]) as session:
                await session.run("INSERT INTO kept VALUES (1)")
            self.logins += 1


def _all_moved_on(clients: list[Client], seen: list[int], running: list[asyncio.Task[None]]) -> bool:
    """Who was told before logs in at most once more with the old ones. True also when one has failed."""
    return all(client.logins > count + 1 for client, count in zip(clients, seen, strict=True)) or any(
        task.done() for task in running
    )


async def _rotate_under_load(host: EngineHost, rotations: int) -> None:
    async with tenants(host, limits=EngineLimits(connections=10)) as [tenant]:
        async with session_of(host, tenant) as session:
            await session.run("CREATE TABLE kept (n INT)")
        told, present = [login_of(tenant)], tenant
        clients = [Client() for _ in range(3)]
        running = [asyncio.create_task(client.go_on(host, tenant, told)) for client in clients]
        for number in range(1, rotations + 1):
            old, new = told[-1], next_login(host, tenant, number)
            await host.adapter.add_credential(present, new)
            await host.adapter.log_in_as(present, new)
            told.append(new)
            await until(partial(_all_moved_on, clients, [client.logins for client in clients], running))
            await host.adapter.retire_credential(present, new, old, end_sessions=False)
            present = logging_in_as(tenant, new)
        assert not any(task.done() for task in running), running
        await ended(*running)
        assert [await accepted(host, tenant, login) for login in told[-2:]] == [False, True]
        await host.adapter.revoke_access(present)
        await host.adapter.restore_access(present)
        async with session_as(host, tenant, told[-1]) as session:
            [(rows,)] = await session.run("SELECT COUNT(*) FROM kept")
        assert rows >= sum(client.logins for client in clients)


async def test_rotations_refuse_no_client(host: EngineHost) -> None:
    await _rotate_under_load(host, 6)


@pytest.mark.soak
async def test_a_thousand_rotations_refuse_no_client(host: EngineHost) -> None:
    await _rotate_under_load(host, 1000)
