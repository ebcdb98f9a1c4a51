"""Logins that begin and don't finish, and sessions that change to another account and don't: they hold up no end of a
tenant's access, don't outlive it, and count as nobody's sessions."""

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, cast

import aiomysql
import pymysql
import pytest
from pymysql.constants import COMMAND

from app.engines.base import Access, Login, Tenant
from app.engines.mysql import sessions
from app.engines.mysql.connection import MySQLConnection
from tests.engines.harness import EngineHost, kind_of, new_tenant, session_of, tenants
from tests.support.waiting import ended, until

CLIENTS = 4
SWITCHED = "mysql_clear_password"
"""From this plugin the server switches to the account's own, and waits for the answer."""
_UTF8MB4 = 45


class _HeldLogin(aiomysql.Connection):  # type: ignore[misc]  # the driver is untyped
    """Names its account, and goes on when `go` is set."""

    def __init__(self, host: EngineHost, account: Tenant | Login, database: str, plugin: str = SWITCHED) -> None:
        address = host.administrator
        super().__init__(
            host=address.host,
            port=address.port,
            user=account.name,
            password=account.password,
            db=database,
            auth_plugin=plugin,
        )
        self.asked = asyncio.Event()
        self.go = asyncio.Event()

    async def _process_auth(self, plugin_name: bytes, auth_packet: Any) -> None:
        self.asked.set()
        await self.go.wait()
        await super()._process_auth(plugin_name, auth_packet)

    async def become(self, other: Tenant) -> None:
        """COM_CHANGE_USER, with no answer to the server's question yet."""
        self._password = other.password
        names = b"%b\0\0%b\0" % (other.name.encode(), other.name.encode())
        await self._execute_command(
            COMMAND.COM_CHANGE_USER, names + struct.pack("<H", _UTF8MB4) + SWITCHED.encode() + b"\0\0"
        )
        packet = await self._read_packet()
        packet.read_uint8()
        await self._process_auth(packet.read_string(), packet)


class _EndlessLogin(_HeldLogin):
    """Goes on when the server has cut it off."""

    async def _process_auth(self, plugin_name: bytes, auth_packet: Any) -> None:
        await self._reader.read()


@asynccontextmanager
async def _held(host: EngineHost, account: Tenant | Login, database: str) -> AsyncIterator[_HeldLogin]:
    """It raises at the end if the login is let in."""
    login = _HeldLogin(host, account, database)
    connecting = asyncio.create_task(login._connect())
    try:
        await _asked(login, connecting)
        yield login
        login.go.set()
        with pytest.raises(pymysql.MySQLError):
            await connecting
    finally:
        await ended(connecting)
        login.close()


async def _asked(login: _HeldLogin, under_way: asyncio.Task[None]) -> None:
    await until(lambda: login.asked.is_set() or under_way.done())
    if under_way.done():
        await under_way
    assert login.asked.is_set()


def _skip_postgres(host: EngineHost) -> None:
    if kind_of(host) == "postgres":
        pytest.skip("test_logins_postgres has those of its own")


async def test_logins_that_never_finish_hold_up_neither_revocation_nor_removal(host: EngineHost) -> None:
    if host.flavour != "mariadb":
        pytest.skip("it shows nobody's name before the login is finished")
    async with tenants(host) as [tenant]:
        clients = [asyncio.create_task(_come_back(host, tenant)) for _ in range(CLIENTS)]
        try:
            await until(lambda: _all_shown(host, tenant))
            await host.adapter.revoke_access(tenant)
            await host.adapter.destroy(tenant)
        finally:
            await ended(*clients)


async def test_a_login_that_began_before_a_revocation_is_not_let_in_after_it(host: EngineHost) -> None:
    _skip_postgres(host)
    async with tenants(host) as [tenant]:
        user = await _user_of(host, tenant, "a password of its own")
        async with _held(host, user, tenant.name):
            await host.adapter.revoke_access(tenant)


async def test_a_login_that_began_with_an_older_password_is_ended_with_the_sessions(host: EngineHost) -> None:
    _skip_postgres(host)
    async with tenants(host) as [tenant]:
        user = await _user_of(host, tenant, "a password of its own")
        async with _held(host, user, tenant.name):
            await _user_of(host, tenant, "another one")
            await host.adapter.end_user_sessions(tenant, user.name)


async def test_a_session_that_is_changing_to_a_revoked_account_ends(host: EngineHost) -> None:
    _skip_postgres(host)
    async with tenants(host, 2) as [tenant, other], _changing(host, other, tenant) as (session, changing):
        await host.adapter.revoke_access(tenant)
        session.go.set()
        with pytest.raises(pymysql.MySQLError):
            await changing


async def test_a_session_that_fails_to_change_its_account_writes_nothing_when_frozen(host: EngineHost) -> None:
    """MariaDB gives it back the rights that it had before."""
    _skip_postgres(host)
    async with tenants(host) as [tenant]:
        async with session_of(host, tenant) as session:
            await session.run("CREATE TABLE kept (n int)")
        async with _changing(host, tenant, new_tenant()) as (held, changing):
            await host.adapter.freeze(tenant)
            held.go.set()
            with pytest.raises(pymysql.MySQLError):
                await changing
            with suppress(pymysql.MySQLError, OSError):
                await held.query("INSERT INTO kept VALUES (1)")
                await held.commit()
        assert await host.as_root_in(tenant, f"SELECT count(*) FROM {tenant.name}.kept") == [(0,)]


async def test_a_login_that_nothing_stops_holds_up_no_revocation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "ARRIVAL_SECONDS", 0.0)
    server = _DeafServer()
    await sessions.end_present_sessions(cast(MySQLConnection, server), "tenant", logging_in=True)
    assert "KILL 7" in server.ran


async def test_logins_that_are_not_finished_take_connections_of_their_server(host: EngineHost) -> None:
    _skip_postgres(host)
    async with tenants(host) as [tenant], AsyncExitStack() as held:
        before = (await host.adapter.session_counts()).open
        for _ in range(CLIENTS):
            await held.enter_async_context(_held(host, tenant, tenant.name))
        assert (await host.adapter.session_counts()).open >= before + CLIENTS
        await host.adapter.revoke_access(tenant)


async def test_logins_that_are_not_finished_are_no_sessions(host: EngineHost) -> None:
    if host.flavour != "mariadb":
        pytest.skip("it shows nobody's name before the login is finished")
    async with tenants(host) as [tenant]:
        login = _HeldLogin(host, tenant, tenant.name)
        connecting = asyncio.create_task(login._connect())
        try:
            await _expect_nobodys(host, tenant)
            login.go.set()
            await connecting
            await until(lambda: host.adapter.sessions([tenant.name]))
        finally:
            await ended(connecting)
            login.close()


async def test_a_session_that_is_changing_to_anothers_account_is_not_theirs(host: EngineHost) -> None:
    if host.flavour != "mariadb":
        pytest.skip("it shows nobody's name before the change is finished")
    async with tenants(host, 2) as [tenant, other], _changing(host, other, tenant):
        await _expect_nobodys(host, tenant)


async def _expect_nobodys(host: EngineHost, tenant: Tenant) -> None:
    """The one session that the server shows with the tenant's name counts nowhere, and isn't ended."""
    await until(lambda: host.sessions(tenant.name))
    assert await host.adapter.sessions([tenant.name]) == {}
    assert tenant.name not in (await host.adapter.session_counts()).by_name
    assert await host.adapter.open_sessions(tenant) == {tenant.name: 0}
    assert (await host.adapter.measure([tenant.name]))[tenant.name].connections == 0
    assert await host.adapter.end_surplus(tenant.name, 0) == 0
    assert await host.sessions(tenant.name) == 1


class _DeafServer:
    """KILL doesn't reach a login on it, as while it looks up the name of the client's address."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    async def run(self, statement: str, _values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        self.ran.append(statement)
        return [] if statement.startswith("KILL") else [(7, "unauthenticated user", 0)]


@asynccontextmanager
async def _changing(
    host: EngineHost, own: Tenant, other: Tenant
) -> AsyncIterator[tuple[_HeldLogin, asyncio.Task[None]]]:
    """A session of `own` that has begun to change to the account of `other`, and the change."""
    session = _HeldLogin(host, own, own.name, plugin="")
    session.go.set()
    await session._connect()
    session.asked.clear()
    session.go.clear()
    changing = asyncio.create_task(session.become(other))
    try:
        await _asked(session, changing)
        yield session, changing
    finally:
        await ended(changing)
        session.close()


async def _user_of(host: EngineHost, tenant: Tenant, password: str) -> Login:
    user = Login(name=f"{tenant.name}_u1", password=password, access=Access.READ_WRITE, connections=1)
    await host.adapter.put_user(tenant, user)
    return user


async def _come_back(host: EngineHost, tenant: Tenant) -> None:
    while True:
        login = _EndlessLogin(host, tenant, tenant.name)
        try:
            with suppress(pymysql.MySQLError):
                await login._connect()
        finally:
            login.close()


async def _all_shown(host: EngineHost, tenant: Tenant) -> bool:
    return await host.sessions(tenant.name) >= CLIENTS
