"""Adding, correcting, closing and removing the roles that a tenant's clients log in as."""

from contextlib import suppress
from typing import Any

import asyncpg

from app.engines.base import Access, EngineError, Login, Tenant
from app.engines.postgres import freezing, logins, ownership, prepared, readers, statements
from app.engines.postgres.catalog import TenantObjects, find
from app.engines.postgres.connections import PostgresConnections
from app.engines.postgres.errors import LOCK_NOT_AVAILABLE
from app.engines.postgres.role_removal import drop_role
from app.engines.postgres.sessions import end_sessions_of

_SHARE_LIMIT = "SELECT pg_catalog.headwater_share_limit({})"
_MAY_SET_ROLE = """
SELECT EXISTS (SELECT FROM pg_auth_members m JOIN pg_roles r ON r.oid = m.roleid JOIN pg_roles l ON l.oid = m.member
               WHERE r.rolname = $1 AND l.rolname = $2 AND m.set_option)
"""


class TenantAccounts:
    """The caller holds the tenant's lock, on `connection`, and has read `found` under it.

    An account that is to go is closed first, with a connection limit of 0 that nobody but us can lift. So it stays
    closed when a process dies in between, when its tenant's access is ended and restored, and while its database can't
    be entered; what is left of it is removed with the next change that can enter.
    """

    def __init__(self, connections: PostgresConnections) -> None:
        self._connections = connections

    async def add_login(self, connection: Any, tenant: Tenant, found: TenantObjects, new: Login) -> None:
        connections = statements.remaining(_limit(found), found.user_connections)
        await self._write(connection, tenant, found, new, connections)
        await logins.copy_settings(connection, tenant.name, statements.account(tenant), new.name)
        readers_of = [role for role in found.readers if role not in found.retired]
        if readers_of and found.open:
            # What it makes before it becomes the tenant's role, where nothing keeps it from that.
            async with self._connections.admin_in(tenant.name) as inside:
                await inside.execute("; ".join(readers.default_privileges(new.name, role) for role in readers_of))

    async def put_user(
        self, connection: Any, tenant: Tenant, found: TenantObjects, login: Login, *, keep_rights: bool
    ) -> None:
        limit = _limit(found)
        raised = login.name in found.readers and login.access is Access.READ_WRITE
        lowered = login.name in found.users and login.access is Access.READ_ONLY
        lowered = lowered and await connection.fetchval(_MAY_SET_ROLE, tenant.name, login.name)
        await self._write(connection, tenant, found, login, -1 if login.connections is None else login.connections)
        found = await self._share(connection, tenant, limit)
        if lowered:
            await end_sessions_of(connection, tenant.name, login.name)
        if login.access is Access.READ_ONLY and found.open:
            async with self._connections.admin_in(tenant.name) as inside:
                if lowered:
                    await ownership.take_out(inside, tenant.name, login.name)
                    await connection.execute(f'GRANT CONNECT ON DATABASE "{tenant.name}" TO "{login.name}"')
                if lowered or not keep_rights:
                    await self._let_read(inside, tenant, found, login.name)
        elif raised and found.open:
            async with self._connections.admin_in(tenant.name) as inside:
                await freezing.give_large_objects(inside)

    async def retire(self, connection: Any, tenant: Tenant, found: TenantObjects, role: str) -> None:
        """Closes an account for good, ends its sessions, and removes what can be removed of it. The tenant's own role
        stays, as the owner of everything."""
        if role not in found.roles(tenant):
            return
        limit = _limit(found)
        await connection.execute(_closed(tenant.name, role, reads=role in found.readers))
        await end_sessions_of(connection, tenant.name, role)
        found = await self._share(connection, tenant, limit)
        await self.remove_retired(connection, tenant, found)

    async def remove_retired(self, connection: Any, tenant: Tenant, found: TenantObjects) -> None:
        """Removes the retired accounts, if their database can be entered."""
        retired = [role for role in found.retired if role != tenant.name]
        if not found.open:
            return
        try:
            await self._remove(connection, tenant, found, retired)
        except EngineError as error:
            if error.code != LOCK_NOT_AVAILABLE:
                raise
            # Held by a prepared transaction, which is no session that could be ended.
            async with self._connections.admin_in(tenant.name) as inside:
                await prepared.roll_back_of(inside, found.roles(tenant))
            await self._remove(connection, tenant, found, retired)

    async def complete_readers(self, tenant: Tenant, found: TenantObjects) -> None:
        """Gives read-only users the rights to read, if they never got them or the tenant lost them with all of its own.
        A user that has them keeps what the tenant has left it, also in a database that was loaded from a dump."""
        present = [role for role in found.readers if role not in found.retired]
        if not present:
            return
        async with self._connections.admin_in(tenant.name) as inside:
            for role in present:
                if not await readers.may_read(inside, tenant.name, role):
                    await self._let_read(inside, tenant, found, role)
                # A dump has nothing of what these say of their own.
                for login in self._present(found):
                    if not await readers.may_read(inside, login, role):
                        await inside.execute(readers.default_privileges(login, role))

    async def share_limit(self, session: Any) -> None:
        """Makes the logins of an overlap share the tenant's connection limit. `session` is one of the tenant's."""
        await _share_limit(session, shared=True)

    async def _write(
        self, connection: Any, tenant: Tenant, found: TenantObjects, login: Login, connections: int
    ) -> None:
        written = logins.write_login(
            tenant.name,
            login,
            exists=login.name in found.helpers,
            closed=found.revoked,
            connections=connections,
            temp_limit=found.temp_limit,
        )
        await connection.execute(written)

    async def _share(self, connection: Any, tenant: Tenant, limit: int) -> TenantObjects:
        """Divides the connections anew between the users and the others; returns what is there now."""
        found = (await find(connection, tenant.name)).require(tenant)
        await connection.execute(statements.limit_logins(tenant, limit, found))
        return found

    async def _let_read(self, inside: Any, tenant: Tenant, found: TenantObjects, role: str) -> None:
        await freezing.give_large_objects(inside)
        for login in self._present(found):
            await inside.execute(readers.default_privileges(login, role))
        await readers.grant_select(inside, tenant.name, role)

    def _present(self, found: TenantObjects) -> list[str]:
        return [login for login in found.logins if login not in found.retired]

    async def _remove(self, connection: Any, tenant: Tenant, found: TenantObjects, roles: list[str]) -> None:
        async with self._connections.admin_in(tenant.name) as inside:
            await prepared.roll_back_of(inside, roles)
            for role in roles:
                others = [other for other in found.helpers if other != role] if role in found.readers else None
                await ownership.take_out(inside, tenant.name, role, others)
                await drop_role(self._connections, connection, role)
            if any(role in found.users for role in roles):
                await freezing.give_large_objects(inside)
            if len([role for role in (tenant.name, *found.logins) if role not in found.retired]) == 1:
                await _share_limit(inside, shared=False)


async def _share_limit(session: Any, *, shared: bool) -> None:
    with suppress(asyncpg.UndefinedFunctionError):  # a database from a template that is older, or none
        await session.execute(_SHARE_LIMIT.format("true" if shared else "false"))


def _limit(found: TenantObjects) -> int:
    return found.connections - statements.SERVICE_HEADROOM


def _closed(name: str, role: str, *, reads: bool) -> str:
    closing = f'ALTER ROLE "{role}" NOLOGIN CONNECTION LIMIT 0'
    if role == name:
        return closing
    # A login that was let in a moment ago is refused at the door of the database. A user that reads has its right to
    # connect from a grant, and its membership, which distinguishes it from others, gives it nothing.
    right = f'CONNECT ON DATABASE "{name}"' if reads else f'"{name}"'
    return f'{closing}; REVOKE {right} FROM "{role}"'
