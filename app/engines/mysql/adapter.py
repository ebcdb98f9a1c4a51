"""The MySQL and MariaDB adapter: a database and an account of the same name, with an exact list of privileges.

The administrator's own privileges are in `app.engines.mysql.administrator_grants`, as statements.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from functools import partial

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
)
from app.engines.dumping import Content, Dump, DumpFormat, DumpPurpose
from app.engines.mysql import (
    bookkeeping,
    branches,
    clients,
    copying,
    counting,
    holding,
    host,
    making,
    passwords,
    queries,
    readers,
    reclaiming,
    removal,
    scripts,
    shares,
    sharing,
    usage,
    users,
)
from app.engines.mysql.accounts import LOAD_PURPOSE, account_name, check_user
from app.engines.mysql.blockers import ending_blockers
from app.engines.mysql.bookkeeping import FreezeState
from app.engines.mysql.connection import MySQLConnection
from app.engines.mysql.connections import MySQLConnections
from app.engines.mysql.dumps import comparing, loading
from app.engines.mysql.dumps.accounts import left_accounts, reading_session, refuse_dropped
from app.engines.mysql.dumps.dump import run_tool
from app.engines.mysql.dumps.owning import close_owner, owner_session
from app.engines.mysql.dumps.tools import find_tool
from app.engines.mysql.errors import EMPTY_PASSWORD, TABLE_EXISTS, translated
from app.engines.mysql.grants import grant_all
from app.engines.mysql.sessions import end_overdue, end_present_sessions, end_session
from app.engines.naming import check_login, check_name, check_tenant, literal
from app.engines.pacing import Pace
from app.engines.querying import QueryLimits, ReadSession, WriteSession
from app.engines.scripts import ScriptEnd, ScriptSession

BUSY_SECONDS = 10


class MySQLAdapter(EngineAdapter):
    engine = Engine.MYSQL
    label = "MySQL"
    uri_scheme = "mysql"
    default_port = 3306
    telemetry_name = "mysql"
    transactional_scripts = False
    flavours = frozenset({"mysql", "mariadb"})
    dump_series = 2
    rotation_renames = False
    distinguishes_sessions = False

    def __init__(self, address: AdminAddress, installation: str = "") -> None:
        super().__init__(address, installation)
        self._connections = MySQLConnections(address)
        self._prepared = False

    async def close(self) -> None:
        await self._connections.close()

    async def inspect_host(self) -> HostFacts:
        async with self._connections.admin() as connection:
            facts = await host.inspect(connection)
            try:
                await find_tool(connection.flavour, facts.version)
            except EngineError as error:
                return msgspec.structs.replace(facts, shortcomings=(*facts.shortcomings, f"No backups: {error}"))
            return facts

    async def harden_host(self, extensions: Sequence[str] = ()) -> tuple[str, ...]:
        async with self._admin() as connection:
            return await host.harden(connection)

    async def create(self, tenant: Tenant, limits: EngineLimits) -> None:
        check_tenant(tenant)
        async with self._admin() as connection:
            await bookkeeping.register(connection, tenant, self.installation, limits.connections)
            async with self._exclusive(connection, tenant) as row:
                if row is None:
                    raise EngineError(f"{tenant.name} was removed while it was being made")
                await making.make(connection, tenant, row, limits.connections)

    async def verify_login(self, tenant: Tenant) -> None:
        check_tenant(tenant)
        try:
            await self._write_and_read(tenant)
        except EngineError as error:
            if error.code != str(TABLE_EXISTS):
                raise
            # A crash had left the table: DDL commits immediately. The last statement has dropped it.
            await self._write_and_read(tenant)

    async def _write_and_read(self, tenant: Tenant) -> None:
        async with self._tenant(tenant) as connection:
            if not await making.write_and_read(connection):
                raise EngineError(f"{tenant.name} doesn't read what it wrote")

    async def log_in(self, tenant: Tenant) -> None:
        check_tenant(tenant)
        async with self._tenant(tenant) as connection:
            await connection.run_last("SELECT 1")

    async def restore_credentials(self, tenant: Tenant) -> None:
        check_tenant(tenant)
        async with self._present(tenant) as connection:
            await connection.run(
                f"ALTER USER {account_name(tenant.name)} {connection.flavour.identified(tenant.password)}"
            )

    async def add_credential(self, tenant: Tenant, new: Login) -> None:
        check_tenant(tenant)
        _check_own(tenant, new)
        try:
            await self._let_both_in(tenant, new, has_password=True)
        except EngineError as error:
            if error.code != str(EMPTY_PASSWORD):
                raise
            # The tenant has taken its password away, and the server the second one with it.
            await self._let_both_in(tenant, new, has_password=False)

    async def _let_both_in(self, tenant: Tenant, new: Login, *, has_password: bool) -> None:
        async with self._present(tenant) as connection:
            await passwords.let_both_in(
                connection, tenant.name, tenant.password, new.password, has_password=has_password
            )

    async def retire_credential(self, tenant: Tenant, current: Login, old: Login, *, end_sessions: bool) -> None:
        check_tenant(tenant)
        _check_own(tenant, current)
        async with self._present(tenant) as connection:
            await passwords.let_one_in(connection, tenant.name, current.password)
            if end_sessions:
                await end_present_sessions(connection, tenant.name, helpers=False, logging_in=True)

    async def put_user(self, tenant: Tenant, login: Login, *, keep_rights: bool = False) -> None:
        # Its rights are on the whole database, and its tenant can't take any.
        check_tenant(tenant)
        check_login(tenant, login)
        check_user(tenant, login.name)
        async with self._existing(tenant) as (connection, _):
            row = await bookkeeping.find_row(connection, tenant)
            if row is not None and row.connections is None:
                await self._learn_connections(connection, tenant)
            await users.put(connection, tenant.name, login, revoked=row is None or row.revoked)

    async def _learn_connections(self, connection: MySQLConnection, tenant: Tenant) -> None:
        """Stores the connection limit of a tenant that was made before there were users: its own account has all
        connections so far. While the tenant can't log in the limit stays unknown, until it is set again."""
        with suppress(LoginRefused, TenantFull):
            async with self._tenant(tenant) as session:
                total = await shares.own_limit(session)
            if total is not None:
                await bookkeeping.write_connections(connection, tenant.name, total)

    async def end_user_sessions(self, tenant: Tenant, name: str) -> None:
        check_tenant(tenant)
        check_user(tenant, name)
        async with self._existing(tenant) as (connection, _):
            await end_present_sessions(connection, name, helpers=False, logging_in=True)

    async def remove_user(self, tenant: Tenant, name: str) -> None:
        check_tenant(tenant)
        check_user(tenant, name)
        async with self._present(tenant) as connection:
            await users.remove(connection, self._connections, tenant.name, name)
            await shares.share_out(connection, tenant.name)

    async def log_in_as(self, tenant: Tenant, login: Login) -> None:
        check_login(tenant, login)
        async with self._connections.tenant(login.name, login.password, tenant.name) as connection:
            await connection.run_last("SELECT 1")

    async def open_sessions(self, tenant: Tenant) -> dict[str, int]:
        check_tenant(tenant)
        async with self._admin() as connection:
            if await bookkeeping.find_row(connection, tenant) is None:
                return {}
            return await users.open_sessions(connection, tenant.name)

    async def set_limits(self, tenant: Tenant, limits: EngineLimits) -> None:
        check_tenant(tenant)
        async with self._present(tenant) as connection:
            await shares.set_total(connection, tenant.name, limits.connections)

    async def revoke_access(self, tenant: Tenant) -> None:
        check_tenant(tenant)
        async with self._owned(tenant) as connection:
            if connection is not None:
                await bookkeeping.mark_revoked(connection, tenant.name, True)
                await removal.end_access(connection, self._connections, tenant.name)

    async def restore_access(self, tenant: Tenant, *, frozen: bool = False) -> None:
        check_tenant(tenant)
        async with self._existing(tenant) as (connection, found):
            await making.make_database(connection, tenant.name, found)
            rows = await self._grant_all(connection, tenant, found, frozen=frozen)
            await bookkeeping.mark_frozen(connection, tenant.name, FreezeState.COMPLETE if frozen else FreezeState.NONE)
            for account in found.accounts:
                if account not in rows or not rows[account].removed:
                    await connection.run(f"ALTER USER {account_name(account)} ACCOUNT UNLOCK")
            await bookkeeping.mark_revoked(connection, tenant.name, False)

    async def repair(self, tenant: Tenant) -> None:
        check_tenant(tenant)
        async with self._existing(tenant) as (connection, found):
            row = await bookkeeping.find_row(connection, tenant)
            if row is None or row.revoked:
                return
            await making.make_database(connection, tenant.name, found)
            freeze_state = await bookkeeping.freeze_state(connection, tenant.name)
            await self._grant_all(connection, tenant, found, frozen=freeze_state is not FreezeState.NONE)

    async def freeze(self, tenant: Tenant) -> None:
        check_tenant(tenant)
        async with self._existing(tenant) as (connection, found):
            complete = await bookkeeping.freeze_state(connection, tenant.name) is FreezeState.COMPLETE
            if not complete:
                await bookkeeping.mark_frozen(connection, tenant.name, FreezeState.BEGUN)
            await self._grant_all(connection, tenant, found, frozen=True)
            # Where there is something to lift, that waits for every transaction that has used the database.
            await ending_blockers(connection, tenant.name, partial(removal.lift_read_only, connection, tenant.name))
            if not complete:
                # A session keeps the rights that it had when it selected its database. One that is changing to
                # another account, whichever it names, gets them back when that fails.
                await end_present_sessions(connection, tenant.name, dumps=False, logging_in=True)
                await ending_blockers(connection, tenant.name, partial(removal.lift_read_only, connection, tenant.name))
                await bookkeeping.mark_frozen(connection, tenant.name, FreezeState.COMPLETE)

    async def thaw(self, tenant: Tenant) -> None:
        check_tenant(tenant)
        async with self._existing(tenant) as (connection, found):
            await making.make_database(connection, tenant.name, found)
            await self._grant_all(connection, tenant, found, frozen=False)
            await bookkeeping.mark_frozen(connection, tenant.name, FreezeState.NONE)

    async def reclaim(self, tenant: Tenant) -> None:
        check_tenant(tenant)
        async with self._existing(tenant) as (connection, _):
            await reclaiming.reclaim(connection, tenant.name)

    async def destroy(self, tenant: Tenant) -> None:
        check_tenant(tenant)
        async with self._owned(tenant) as connection:
            if connection is not None:
                await bookkeeping.mark_revoked(connection, tenant.name, True)
                await removal.remove(connection, self._connections, tenant.name)
                await bookkeeping.delete_rows(connection, tenant.name)

    @asynccontextmanager
    async def script_session(self, tenant: Tenant, seconds: float) -> AsyncIterator[ScriptSession]:
        check_tenant(tenant)
        async with self._tenant(tenant) as connection:
            yield scripts.MySQLScript(connection, self._connections.admin)

    async def end_script(self, reference: str) -> ScriptEnd:
        async with self._connections.admin() as connection:
            return await scripts.end_script(connection, reference)

    async def copy_schema(self, source: Tenant, target: Tenant) -> list[str]:
        check_tenant(source)
        check_tenant(target)
        async with self._tenant(source) as reading, self._tenant(target) as writing:
            return await copying.copy_schema(reading, writing, source.name, target.name)

    @asynccontextmanager
    async def dumping(
        self, tenant: Tenant, pace: Pace | None = None, *, purpose: DumpPurpose = DumpPurpose.BACKUP
    ) -> AsyncIterator[Dump]:
        check_tenant(tenant)
        async with AsyncExitStack() as stack:
            with translated(self._connections.host):
                administrator = await stack.enter_async_context(self._connections.extra())
                tool = await find_tool(administrator.flavour, administrator.get_server_info())
                await refuse_dropped(administrator, tenant)
                session = await stack.enter_async_context(
                    reading_session(self._connections, administrator, tenant, purpose.value)
                )
                dump = await stack.enter_async_context(run_tool(tool, session, administrator, tenant, pace or Pace()))
            yield dump

    async def clients_at_work(self, tenant: Tenant) -> bool:
        check_tenant(tenant)
        async with self._connections.admin() as connection:
            return await clients.at_work(connection, tenant.name)

    async def load(
        self, tenant: Tenant, form: DumpFormat, chunks: AsyncIterator[bytes], *, becomes: Tenant | None = None
    ) -> None:
        # Rights are on whole databases here, and in no dump.
        check_tenant(tenant)
        async with AsyncExitStack() as stack:
            with translated(self._connections.host):
                administrator = await stack.enter_async_context(self._connections.extra())
                session = await stack.enter_async_context(owner_session(self._connections, administrator, tenant))
            await loading.load(session, form, chunks, tenant.name, self._connections.host)

    async def contents(self, tenant: Tenant) -> list[Content]:
        check_tenant(tenant)
        with translated(self._connections.host):
            async with (
                self._connections.extra() as administrator,
                reading_session(self._connections, administrator, tenant, LOAD_PURPOSE) as session,
            ):
                return await comparing.contents(session, administrator, tenant.name)

    async def clear(self, tenant: Tenant) -> None:
        check_tenant(tenant)
        async with self._existing(tenant) as (connection, _):
            await removal.drop_database(connection, self._connections, tenant.name)
            await making.make_database(connection, tenant.name, await bookkeeping.find_objects(connection, tenant.name))

    async def end_dumps(self, names: Sequence[str]) -> int:
        for name in names:
            check_name(name)
        ended = 0
        async with self._connections.admin() as connection:
            for name in names:
                ended += await removal.end_dumps(connection, name)
                ended += await close_owner(self._connections, name)
        return ended

    async def left_dumps(self, names: Sequence[str], *, remove: bool = False) -> list[str]:
        async with self._connections.admin() as connection:
            return await left_accounts(connection, names, remove=remove)

    @asynccontextmanager
    async def measuring(self, names: Sequence[str]) -> AsyncIterator[Measuring]:
        for name in names:
            check_name(name)
        async with (
            self._connections.admin() as connection,
            usage.measuring(connection, self._connections.host, names) as measuring,
        ):
            yield measuring

    async def sessions(self, names: Sequence[str]) -> dict[str, frozenset[str]]:
        for name in names:
            check_name(name)
        if not names:
            return {}
        async with self._connections.admin() as connection:
            return await usage.sessions(connection, names)

    async def counters(self, names: Sequence[str]) -> dict[str, Counters]:
        for name in names:
            check_name(name)
        if not names:
            return {}
        async with self._connections.admin() as connection:
            return await counting.counters(connection, names)

    async def end_excessive_sessions(self, names: Sequence[str], limits: SessionLimits) -> list[SessionsEnded]:
        for name in names:
            check_name(name)
        if not names:
            return []
        async with self._connections.admin() as connection:
            ended = await sharing.end_excessive_sessions(connection, names, limits)
            seconds = limits.transaction_seconds
            detached = await branches.end_detached(connection, self._connections, names, seconds)
        return ended + [SessionsEnded(tenant=name, reason="prepared_transaction") for name in detached]

    async def session_counts(self) -> SessionCounts:
        async with self._connections.long_lived() as connection:
            return await holding.counts(connection)

    async def hold(self, name: str, limits: HeldLimits) -> None:
        check_name(name)
        async with self._watching() as connection:
            await holding.hold(connection, name, limits)

    async def held(self) -> list[str]:
        async with self._watching() as connection:
            return await bookkeeping.find_held(connection)

    async def end_surplus(self, name: str, keep: int) -> int:
        check_name(name)
        async with self._connections.long_lived() as connection:
            return await holding.end_surplus(connection, name, keep)

    async def shared_resources(self) -> list[SharedResource]:
        async with self._connections.admin() as connection:
            return await sharing.resources(connection)

    async def list_tenants(self) -> list[FoundTenant]:
        async with self._admin() as connection:
            return await bookkeeping.list_rows(connection)

    async def make_reader(self, tenant: Tenant, password: str) -> None:
        check_tenant(tenant)
        async with self._existing(tenant) as (connection, found):
            row = await bookkeeping.find_row(connection, tenant)
            if row is None or row.revoked:
                raise LoginRefused(f"access of {tenant.name} was ended")
            exists = readers.reader_name(tenant.name) in found.accounts
            await readers.write_account(connection, tenant.name, password, exists=exists)

    @asynccontextmanager
    async def reading(self, tenant: Tenant, password: str, limits: QueryLimits) -> AsyncIterator[ReadSession]:
        check_name(tenant.name)
        opened = partial(self._connections.unprivileged, readers.reader_name(tenant.name), password, tenant.name)
        async with self._session(opened, limits, read_only=True) as connection:
            yield queries.MySQLReadSession(connection, partial(readers.end_session, opened), limits, tenant.name)

    @asynccontextmanager
    async def writing(self, tenant: Tenant, limits: QueryLimits) -> AsyncIterator[WriteSession]:
        check_name(tenant.name)
        user = tenant.login or tenant.name
        opened = partial(self._connections.unprivileged, user, tenant.password, tenant.name)
        async with self._session(opened, limits, read_only=False) as connection:
            yield queries.MySQLWriteSession(connection, partial(self._end_session, user), limits)

    async def _end_session(self, account: str, number: int) -> None:
        """Ends the session as the administrator: the tenant's clients may have taken all sessions of its account."""
        async with self._connections.admin() as connection:
            await end_session(connection, account, number)

    async def end_overdue(self, seconds: float) -> int:
        async with self._connections.admin() as connection:
            return await end_overdue(connection, seconds)

    @asynccontextmanager
    async def _session(
        self, opened: Callable[[], Awaitable[MySQLConnection]], limits: QueryLimits, *, read_only: bool
    ) -> AsyncIterator[MySQLConnection]:
        connection = await opened()
        try:
            with translated(self._connections.host):
                await queries.prepare(connection, limits, read_only=read_only)
            yield connection
        finally:
            connection.quit()

    def _tenant(self, tenant: Tenant) -> AbstractAsyncContextManager[MySQLConnection]:
        return self._connections.tenant(tenant.login or tenant.name, tenant.password, tenant.name)

    async def _grant_all(
        self, connection: MySQLConnection, tenant: Tenant, found: bookkeeping.ExistingObjects, *, frozen: bool
    ) -> dict[str, bookkeeping.UserRow]:
        """Returns the rows of the tenant's further accounts."""
        rows = await bookkeeping.find_users(connection, tenant.name)
        access: dict[str, Access] = {user: row.access for user, row in rows.items()}
        await grant_all(connection, tenant.name, found.accounts, access, frozen=frozen)
        return rows

    @asynccontextmanager
    async def _admin(self) -> AsyncIterator[MySQLConnection]:
        async with self._connections.admin() as connection:
            if not self._prepared:
                await bookkeeping.create_tables(connection)
                self._prepared = True
            yield connection

    @asynccontextmanager
    async def _watching(self) -> AsyncIterator[MySQLConnection]:
        """The connection that stays open, with our tables in place."""
        async with self._connections.long_lived() as connection:
            if not self._prepared:
                await bookkeeping.create_tables(connection)
                self._prepared = True
            yield connection

    @asynccontextmanager
    async def _owned(self, tenant: Tenant) -> AsyncIterator[MySQLConnection | None]:
        """Yields a connection that is exclusive for this tenant; None when nothing has its name. Raises `NameTaken`."""
        async with self._admin() as connection, self._exclusive(connection, tenant) as row:
            if row is None:
                await bookkeeping.refuse_strangers(connection, tenant.name)
            yield connection if row else None

    @asynccontextmanager
    async def _present(self, tenant: Tenant) -> AsyncIterator[MySQLConnection]:
        """Yields a connection as `_owned` does. Raises `EngineError` for a tenant that doesn't exist, before or when
        its account is altered."""
        async with self._owned(tenant) as connection:
            if connection is None:
                raise EngineError(f"{tenant.name} is not on this host")
            yield connection

    @asynccontextmanager
    async def _existing(self, tenant: Tenant) -> AsyncIterator[tuple[MySQLConnection, bookkeeping.ExistingObjects]]:
        """Yields a connection as `_owned` does, and which of the tenant's objects exist. Raises `EngineError` for a
        tenant that doesn't exist."""
        async with self._present(tenant) as connection:
            found = await bookkeeping.find_objects(connection, tenant.name)
            if tenant.name not in found.accounts:
                raise EngineError(f"{tenant.name} is only in part on this host")
            yield connection, found

    @asynccontextmanager
    async def _exclusive(
        self, connection: MySQLConnection, tenant: Tenant
    ) -> AsyncIterator[bookkeeping.TenantRow | None]:
        """Excludes other calls for this tenant during the block. The lock outlives a killed worker as long as the
        server still runs its last statement. Yields the tenant's row, or None when there is none. Raises
        `NameTaken`."""
        row = await bookkeeping.take_lock(connection, tenant, BUSY_SECONDS)
        connection.parting = f"DO RELEASE_LOCK({literal(row.lock_name)})" if row is not None else None
        yield row
        await connection.part()


def _check_own(tenant: Tenant, login: Login) -> None:
    """Raises `ValueError` unless the login has the tenant's own name: a rotation keeps it here."""
    check_login(tenant, login)
    if login.name != tenant.name:
        raise ValueError(f"the credentials of {tenant.name} keep its name")
