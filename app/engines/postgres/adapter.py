"""The PostgreSQL adapter: a role and a database of the same name, the database owned by our administrator.

The tenant doesn't own its database, because an owner may lift its connection limit, open it to PUBLIC and drop it. It
owns the schema `public` instead.

The administrator needs CREATEDB, CREATEROLE and CONNECT on its own database, and should have `GRANT SET ON PARAMETER
temp_file_limit`. It can't manage what it created under another name: keep the role, and change its password instead.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from app.contracts.base import Engine
from app.engines.base import (
    Access,
    AdminAddress,
    Counters,
    EngineAdapter,
    EngineError,
    EngineLimits,
    FoundTenant,
    HeldLimits,
    HostFacts,
    Login,
    LoginRefused,
    Measuring,
    SessionCounts,
    SessionLimits,
    SessionsEnded,
    SharedResource,
    Tenant,
    TenantFull,
    accepted_when_full,
)
from app.engines.dumping import Content, Copied, Dump, DumpFormat, DumpPurpose
from app.engines.naming import (
    HELPER_SEPARATOR,
    LOGIN_PURPOSE,
    check_account,
    check_login,
    check_name,
    check_tenant,
    check_user,
    written_marker,
)
from app.engines.pacing import Pace
from app.engines.postgres import (
    catalog,
    clients,
    holding,
    host,
    measuring,
    prepared,
    queries,
    readers,
    reclaiming,
    role_settings,
    scripts,
    sharing,
    statements,
)
from app.engines.postgres.accounts import TenantAccounts
from app.engines.postgres.blockers import ending_blockers
from app.engines.postgres.connections import PostgresConnections
from app.engines.postgres.dumps import copying, dump, exchange, helpers, load
from app.engines.postgres.dumps.tools import DumpTools
from app.engines.postgres.errors import UNRECOGNIZED_PARAMETER
from app.engines.postgres.extensions import check_names
from app.engines.postgres.guard import make_template
from app.engines.postgres.login_check import take_schema, write_and_read
from app.engines.postgres.revocation import end_access
from app.engines.postgres.role_removal import drop_role
from app.engines.postgres.sessions import end_sessions_of
from app.engines.postgres.tenant_database import TenantDatabase
from app.engines.querying import QueryLimits, ReadSession, WriteSession
from app.engines.scripts import ScriptEnd, ScriptSession

_HINDERED_SECONDS = 2.0
"""How long a tenant's open transaction may delay what is done to it: less than the time that other steps on its host
wait."""


class PostgresAdapter(EngineAdapter):
    engine = Engine.POSTGRES
    label = "PostgreSQL"
    uri_scheme = "postgresql"
    default_port = 5432
    telemetry_name = "postgresql"
    transactional_scripts = True
    flavours = frozenset({"postgres"})
    dump_series = 1
    rotation_renames = True
    distinguishes_sessions = True
    replaces_whole = True

    def __init__(
        self, address: AdminAddress, installation: str = "", *, session_settings: Mapping[str, str] | None = None
    ) -> None:
        """`session_settings` are further server settings of the administrator's own sessions."""
        super().__init__(address, installation)
        self._connections = PostgresConnections(address, session_settings)
        self._inside = TenantDatabase(self._connections)
        self._accounts = TenantAccounts(self._connections)
        self._leaving: set[asyncio.Task[None]] = set()
        self._tools = DumpTools()

    async def close(self) -> None:
        await asyncio.gather(*self._leaving, return_exceptions=True)
        await self._connections.close()

    async def inspect_host(self) -> HostFacts:
        try:
            async with self._connections.admin() as connection:
                facts = await host.inspect(connection)
        except EngineError as error:
            if error.code == UNRECOGNIZED_PARAMETER:  # of those that every connection of ours asks for
                raise EngineError(host.TOO_OLD, code=error.code) from error
            raise
        try:
            await self._tools.folder(host.major_of(facts.version))
        except EngineError as error:
            return msgspec.structs.replace(facts, shortcomings=(*facts.shortcomings, f"No backups: {error}"))
        return facts

    async def extensions(self) -> list[str]:
        async with self._connections.admin() as connection:
            return await host.extensions(connection)

    @classmethod
    def missing_extensions(cls, listed: Sequence[str], present: Sequence[str]) -> list[str]:
        check_names(listed)
        return sorted(set(listed) - set(present))

    async def harden_host(self, extensions: Sequence[str] = ()) -> tuple[str, ...]:
        check_names(extensions)
        async with self._connections.admin() as connection:
            if await connection.fetchval("SELECT rolsuper FROM pg_roles WHERE rolname = current_user"):
                target, connect = self._connections.target(), self._connections.connect
                await make_template(connection, target, connect, extensions=extensions)
            missing = self.missing_extensions(extensions, await host.extensions(connection))
            await copying.measure(self._connections, connection)
            return (*await host.harden(connection), *map(host.lacks_extension, missing))

    async def create(self, tenant: Tenant, limits: EngineLimits) -> None:
        check_tenant(tenant)
        async with self._working(tenant) as connection:
            if await self._make(connection, tenant, limits):
                await self._inside.give_schema(tenant.name)

    async def verify_login(self, tenant: Tenant) -> None:
        check_tenant(tenant)
        async with self._connected(tenant) as session:
            await write_and_read(session, tenant)

    async def create_verified(self, tenant: Tenant, limits: EngineLimits) -> None:
        """A new database's first session is slow, so the tenant's own session does what a second one would have to
        do."""
        check_tenant(tenant)
        async with self._working(tenant) as connection:
            if not await self._make(connection, tenant, limits):
                raise LoginRefused(f"access of {tenant.name} was ended")
            try:
                async with self._connected(tenant) as session:
                    if not await take_schema(session):
                        await self._inside.give_schema(tenant.name)
                    await write_and_read(session, tenant)
            except TenantFull as full:
                with accepted_when_full():
                    raise full
                await self._inside.give_schema(tenant.name)

    async def log_in(self, tenant: Tenant) -> None:
        check_tenant(tenant)
        await self._log_in(tenant.name, statements.account(tenant), tenant.password)

    async def log_in_as(self, tenant: Tenant, login: Login) -> None:
        check_login(tenant, login)
        # The proof of a rotation: from here on there are two logins, until the overlap ends.
        proves = login.name.startswith(f"{tenant.name}{HELPER_SEPARATOR}{LOGIN_PURPOSE}")
        await self._log_in(tenant.name, login.name, login.password, shares_limit=proves)

    async def restore_credentials(self, tenant: Tenant) -> None:
        check_tenant(tenant)
        async with self._changing(tenant) as (connection, found):
            if statements.account(tenant) not in found.roles(tenant):
                raise EngineError(f"{statements.account(tenant)} is not on this host")
            await connection.execute(statements.restore_credentials(tenant))

    async def add_credential(self, tenant: Tenant, new: Login) -> None:
        check_tenant(tenant)
        check_login(tenant, new)
        if new.name == tenant.name or new.access is not Access.READ_WRITE:
            raise ValueError("a rotation makes a new login, which may do what the tenant may")
        async with self._changing(tenant) as (connection, found):
            await self._accounts.add_login(connection, tenant, found, new)

    async def retire_credential(self, tenant: Tenant, current: Login, old: Login, *, end_sessions: bool) -> None:
        check_tenant(tenant)
        check_account(tenant, current.name)
        check_account(tenant, old.name)
        async with self._changing(tenant) as (connection, found):
            if current.name == old.name or current.name not in found.admitted(tenant):
                raise EngineError(f"{current.name} can't take the place of {old.name}: it is not on this host")
            await self._accounts.retire(connection, tenant, found, old.name)

    async def put_user(self, tenant: Tenant, login: Login, *, keep_rights: bool = False) -> None:
        check_tenant(tenant)
        check_user(tenant, login.name)
        check_login(tenant, login)
        async with self._changing(tenant) as (connection, found):
            keep = keep_rights and login.name in found.helpers
            await self._accounts.put_user(connection, tenant, found, login, keep_rights=keep)

    async def end_user_sessions(self, tenant: Tenant, name: str) -> None:
        check_tenant(tenant)
        check_user(tenant, name)
        async with self._changing(tenant) as (connection, _):
            await end_sessions_of(connection, tenant.name, name)

    async def remove_user(self, tenant: Tenant, name: str) -> None:
        check_tenant(tenant)
        check_user(tenant, name)
        async with self._changing(tenant) as (connection, found):
            await self._accounts.retire(connection, tenant, found, name)

    async def open_sessions(self, tenant: Tenant) -> dict[str, int]:
        check_tenant(tenant)
        async with self._connections.admin() as connection:
            return await catalog.open_sessions(connection, tenant.name)

    async def set_limits(self, tenant: Tenant, limits: EngineLimits) -> None:
        check_tenant(tenant)
        async with self._changing(tenant) as (connection, found):
            await connection.execute(statements.limit(tenant, limits, found))

    async def revoke_access(self, tenant: Tenant) -> None:
        check_tenant(tenant)
        await end_access(self._connections, tenant)

    async def restore_access(self, tenant: Tenant, *, frozen: bool = False) -> None:
        check_tenant(tenant)
        async with self._changing(tenant) as (connection, found):
            await connection.execute(statements.open_database(tenant, self._marker(tenant), frozen=frozen))
            # What a revocation found half created is completed here, before anybody logs in.
            await self._inside.give_schema(tenant.name)
            if frozen:
                await self._inside.freeze(connection, tenant.name)
            else:
                await self._inside.thaw(tenant.name)
            # What went or came while nobody could enter the database.
            found = (await catalog.find(connection, tenant.name)).require(tenant)
            await self._accounts.complete_readers(tenant, found)
            if [role for role in found.retired if role != tenant.name]:
                await self._accounts.remove_retired(connection, tenant, found)
                found = (await catalog.find(connection, tenant.name)).require(tenant)
            await connection.execute(statements.allow_logins(tenant, found))
            await self._share_limit(tenant, found)

    async def repair(self, tenant: Tenant) -> None:
        check_tenant(tenant)
        async with self._changing(tenant) as (connection, found):
            if found.revoked:
                return
            # The schema first: complete rights mean that nothing is left to repair.
            await self._inside.give_schema(tenant.name)
            frozen = await self._inside.is_frozen(tenant.name)
            await connection.execute(statements.open_database(tenant, self._marker(tenant), frozen=frozen))
            if frozen:
                await self._inside.freeze(connection, tenant.name)
            await self._accounts.complete_readers(tenant, found)

    async def freeze(self, tenant: Tenant) -> None:
        check_tenant(tenant)
        async with self._changing(tenant) as (connection, _):
            await connection.execute(statements.grants(tenant.name, frozen=True))
            await self._inside.freeze(connection, tenant.name)

    async def thaw(self, tenant: Tenant) -> None:
        check_tenant(tenant)
        async with self._changing(tenant) as (connection, _):
            await self._inside.thaw(tenant.name)
            await connection.execute(statements.grants(tenant.name, frozen=False))

    async def reclaim(self, tenant: Tenant) -> None:
        check_tenant(tenant)
        settings = await self._server_settings(tenant.name, statements.account(tenant))
        async with self._connected(tenant, settings) as session:
            await reclaiming.reclaim(session)

    async def destroy(self, tenant: Tenant) -> None:
        check_tenant(tenant)
        await self.revoke_access(tenant)
        async with self._working(tenant) as connection:
            found = (await catalog.find(connection, tenant.name)).check(tenant)
            if found.database:
                if not found.invalid:
                    await prepared.roll_back(connection, self._connections, tenant.name)
                await connection.execute(statements.drop_database(tenant.name))
            await exchange.drop_aside(connection, tenant.name)
            # The role is dropped last: its comment proves that an unfinished removal is ours.
            for role in reversed(found.roles(tenant)):
                await drop_role(self._connections, connection, role)

    @asynccontextmanager
    async def dumping(
        self, tenant: Tenant, pace: Pace | None = None, *, purpose: DumpPurpose = DumpPurpose.BACKUP
    ) -> AsyncIterator[Dump]:
        check_tenant(tenant)
        async with dump.dumping(self._connections, self._tools, tenant, pace or Pace(), purpose) as begun:
            yield begun

    async def clients_at_work(self, tenant: Tenant) -> bool:
        check_tenant(tenant)
        async with self._connections.admin() as connection:
            return await clients.at_work(connection, tenant.name)

    async def load(
        self, tenant: Tenant, form: DumpFormat, chunks: AsyncIterator[bytes], *, becomes: Tenant | None = None
    ) -> None:
        check_tenant(tenant)
        check_tenant(becomes or tenant)
        await load.load(self._connections, self._tools, tenant, form, chunks, owner=becomes or tenant)

    async def contents(self, tenant: Tenant) -> list[Content]:
        check_tenant(tenant)
        return await dump.contents(self._connections, tenant)

    async def clear(self, tenant: Tenant) -> None:
        check_tenant(tenant)
        async with self._changing(tenant) as (connection, found):
            await exchange.clear(self._connections, connection, tenant, self._marker(tenant), found)
            if not found.revoked:
                await self._accounts.complete_readers(tenant, found)
                await self._share_limit(tenant, found)

    async def replace(self, tenant: Tenant, scratch: Tenant) -> None:
        check_tenant(tenant)
        check_tenant(scratch)
        async with (
            self._working(tenant) as connection,
            ending_blockers(self._connections, scratch.name, patience=_HINDERED_SECONDS),
        ):
            await self._connections.lock(connection, scratch.name)
            await exchange.replace(self._connections, connection, tenant, scratch, self.installation)

    async def copies_at_once(self) -> bool:
        async with self._connections.admin() as connection:
            return await copying.shares_blocks(connection)

    async def copy_database(self, source: Tenant, target: Tenant) -> Copied:
        check_tenant(source)
        check_tenant(target)
        async with self._working(target) as connection:
            if not await copying.shares_blocks(connection):
                return Copied(done=False)
            await self._connections.lock(connection, source.name)
            return await copying.copy(self._connections, connection, source, target, self._marker(target))

    async def end_dumps(self, names: Sequence[str]) -> int:
        return sum([await helpers.end_helpers(self._connections, name) for name in names])

    async def left_dumps(self, names: Sequence[str], *, remove: bool = False) -> list[str]:
        return await helpers.left(self._connections, names, remove=remove)

    @asynccontextmanager
    async def script_session(self, tenant: Tenant, seconds: float) -> AsyncIterator[ScriptSession]:
        check_tenant(tenant)
        user = statements.account(tenant)
        connection = await self._connections.unprivileged(
            user,
            tenant.password,
            database=tenant.name,
            server_settings=await self._server_settings(tenant.name, user) | scripts.session_settings(seconds),
        )
        try:
            yield scripts.PostgresScript(connection, self._connections.admin)
        finally:
            await scripts.close(connection)

    async def end_script(self, reference: str) -> ScriptEnd:
        async with self._connections.admin() as connection:
            return await scripts.end_script(connection, reference)

    @asynccontextmanager
    async def measuring(self, names: Sequence[str]) -> AsyncIterator[Measuring]:
        for name in names:
            check_name(name)
        async with self._connections.admin() as connection:
            yield measuring.PostgresMeasuring(connection, self._connections.host)

    async def sessions(self, names: Sequence[str]) -> dict[str, frozenset[str]]:
        for name in names:
            check_name(name)
        async with self._connections.admin() as connection:
            return await catalog.sessions(connection, names)

    async def counters(self, names: Sequence[str]) -> dict[str, Counters]:
        for name in names:
            check_name(name)
        async with self._connections.admin() as connection:
            return await measuring.counters(connection, names)

    async def end_excessive_sessions(self, names: Sequence[str], limits: SessionLimits) -> list[SessionsEnded]:
        for name in names:
            check_name(name)
        async with self._connections.long_lived() as connection:
            ended = await sharing.end_excessive_sessions(connection, names, limits)
            forgotten = await sharing.forgotten(connection, names, limits.transaction_seconds)
        for name in forgotten:
            count = await prepared.roll_back_old(self._connections, name, limits.transaction_seconds)
            ended += [SessionsEnded(tenant=name, reason="prepared_transaction")] * count
        return ended

    async def session_counts(self) -> SessionCounts:
        async with self._connections.long_lived() as connection:
            return await holding.counts(connection)

    async def hold(self, name: str, limits: HeldLimits) -> None:
        check_name(name)
        async with self._connections.long_lived() as connection:
            if statement := holding.lowered(name, limits, await catalog.find(connection, name)):
                await connection.execute(statement)

    async def held(self) -> list[str]:
        async with self._connections.long_lived() as connection:
            return await holding.held(connection)

    async def end_surplus(self, name: str, keep: int) -> int:
        check_name(name)
        async with self._connections.long_lived() as connection:
            return await holding.end_surplus(connection, name, keep)

    async def shared_resources(self) -> list[SharedResource]:
        async with self._connections.long_lived() as connection:
            return await sharing.resources(connection)

    async def list_tenants(self) -> list[FoundTenant]:
        async with self._connections.admin() as connection:
            return await catalog.list_marked(connection)

    async def make_reader(self, tenant: Tenant, password: str) -> None:
        check_tenant(tenant)
        async with self._changing(tenant) as (connection, found):
            if found.revoked:
                raise LoginRefused(f"access of {tenant.name} was ended")
            exists = readers.reader_name(tenant.name) in found.helpers
            await connection.execute(
                readers.write_role(tenant.name, password, exists=exists, temp_limit=found.temp_limit)
            )
            async with self._connections.admin_in(tenant.name) as inside:
                await readers.grant_select(inside, tenant.name, readers.reader_name(tenant.name))

    @asynccontextmanager
    async def reading(self, tenant: Tenant, password: str, limits: QueryLimits) -> AsyncIterator[ReadSession]:
        reader = readers.reader_name(tenant.name)
        async with self._session(tenant.name, reader, password, queries.settings(limits, read_only=True)) as session:
            yield queries.PostgresReadSession(session, limits)

    @asynccontextmanager
    async def writing(self, tenant: Tenant, limits: QueryLimits) -> AsyncIterator[WriteSession]:
        user = statements.account(tenant)
        settings = await self._server_settings(tenant.name, user) | queries.settings(limits, read_only=False)
        async with self._session(tenant.name, user, tenant.password, settings) as session:
            yield queries.PostgresWriteSession(session, limits)

    @asynccontextmanager
    async def _session(self, database: str, user: str, password: str, settings: dict[str, str]) -> AsyncIterator[Any]:
        check_name(database)
        connection = await self._connections.unprivileged(
            user, password, database=database, server_settings=settings, command_timeout=None
        )
        try:
            yield connection
        finally:
            # Nobody has to wait for the end of the connection.
            leaving = asyncio.create_task(queries.finish(connection))
            self._leaving.add(leaving)
            leaving.add_done_callback(self._leaving.discard)

    async def _server_settings(self, name: str, user: str) -> dict[str, str]:
        """Settings for a session of our own as the tenant: the server's values for everything that the tenant has
        set for its role."""
        async with self._connections.admin() as connection:
            return await role_settings.server_values(connection, user) | role_settings.owner(name, user)

    async def _log_in(self, name: str, user: str, password: str, *, shares_limit: bool = False) -> None:
        settings = await self._server_settings(name, user)
        # What ends every login of the tenant's clients must end this login too.
        for setting in ("local_preload_libraries", "role"):
            settings.pop(setting, None)
        async with self._connections.tenant(name, user, password, settings) as connection:
            if shares_limit:
                await self._accounts.share_limit(connection)
            await connection.execute("SELECT 1")

    @asynccontextmanager
    async def _connected(self, tenant: Tenant, settings: dict[str, str] | None = None) -> AsyncIterator[Any]:
        """A session of the tenant in its own database, as its role, whatever it has set for the role that it logs in
        as."""
        user = statements.account(tenant)
        settings = (settings or {}) | role_settings.owner(tenant.name, user)
        async with self._connections.tenant(tenant.name, user, tenant.password, settings) as session:
            yield session

    @asynccontextmanager
    async def _working(self, tenant: Tenant) -> AsyncIterator[Any]:
        """The administrator's connection, exclusive for this tenant. After `_HINDERED_SECONDS` it ends sessions of
        the tenant that it waits for."""
        async with (
            self._connections.locked(tenant.name) as connection,
            ending_blockers(self._connections, tenant.name, patience=_HINDERED_SECONDS),
        ):
            yield connection

    @asynccontextmanager
    async def _changing(self, tenant: Tenant) -> AsyncIterator[tuple[Any, catalog.TenantObjects]]:
        """The same for an existing tenant, with its catalog entries. Raises `EngineError`."""
        async with self._working(tenant) as connection:
            yield connection, (await catalog.find(connection, tenant.name)).require(tenant)

    async def _share_limit(self, tenant: Tenant, found: catalog.TenantObjects) -> None:
        """Makes the logins of an overlap share the limit in a database that the tenant has got since the overlap began:
        what makes them share it is in the database."""
        if len([role for role in (tenant.name, *found.logins) if role not in found.retired]) > 1:
            async with self._connections.admin_in(tenant.name) as inside:
                await self._accounts.share_limit(inside)

    async def _make(self, connection: Any, tenant: Tenant, limits: EngineLimits) -> bool:
        """Creates everything except the schema. Returns whether the tenant may log in; after a revocation it may
        not."""
        found = (await catalog.find(connection, tenant.name)).check(tenant)
        await connection.execute(statements.write_role(tenant, self._marker(tenant), limits, found))
        if found.invalid:
            await connection.execute(statements.drop_database(tenant.name))
        if found.invalid or not found.database:
            await connection.execute(statements.create_database(tenant.name, limits, found))
        else:
            await connection.execute(statements.limit(tenant, limits, found))
        if not found.revoked:
            # An open one was complete before, and may have been frozen since.
            frozen = found.open and await self._inside.is_frozen(tenant.name)
            await connection.execute(statements.open_database(tenant, self._marker(tenant), frozen=frozen))
        return not found.revoked

    def _marker(self, tenant: Tenant) -> str:
        return written_marker(tenant, self.installation)
