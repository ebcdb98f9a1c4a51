"""The short-lived accounts of dumps and loads, and entering a database that is closed to its tenant.

A revoked tenant's database takes no connections, and its roles may not log in. For a dump it takes connections again,
while the tenant's roles still may not log in: that opens nothing for the tenant, also when a process dies before it is
closed again. Ending the tenant's access ends a dump or load that is under way.
"""

import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import structlog

from app.core.scram import verifier
from app.engines.base import EngineError, Tenant
from app.engines.dumping import DumpPurpose
from app.engines.naming import HELPER_SEPARATOR, check_name, literal
from app.engines.postgres import catalog, statements
from app.engines.postgres.blockers import ending_blockers
from app.engines.postgres.connections import PostgresConnections
from app.engines.postgres.role_removal import drop_role
from app.engines.postgres.sessions import end_sessions_of

DUMP, LOAD = DumpPurpose.BACKUP.value, "restore"
"""The helpers are `<name>_dump`, `<name>_clone` and `<name>_restore`: `_load` would be a login of a rotation, which
begin with `_l`."""
PURPOSES = (*(purpose.value for purpose in DumpPurpose), LOAD)
_LOGIN_SECONDS = 300
"""How long a helper may log in. Its sessions outlast that."""
_CONNECTIONS = 3
_ITERATIONS = 1
"""As with the accounts for questions: the password is random."""
_HINDERED_SECONDS = 2.0

_LEFT = f"""
SELECT rolname FROM pg_roles r
WHERE split_part(rolname, '{HELPER_SEPARATOR}', 2) = ANY ($1::text[]) AND rolvaliduntil < now()
  AND NOT EXISTS (SELECT FROM pg_stat_activity a WHERE a.usesysid = r.oid) ORDER BY rolname
"""  # noqa: S608 - our own words

log = structlog.get_logger(__name__)


class Helper(msgspec.Struct, frozen=True):
    """An account that logs in for one dump or load."""

    name: str
    oid: int
    password: str
    reads_everything: bool
    """Whether row level security doesn't apply to it."""
    administrator: str
    """The administrator that made it."""

    def __repr__(self) -> str:
        return f"Helper({self.name})"


@asynccontextmanager
async def helping(connections: PostgresConnections, tenant: Tenant, purpose: str) -> AsyncIterator[Helper]:
    """An account for this block, which takes the place of an earlier one for the same purpose and ends its sessions. It
    is a member of the tenant's roles and no others. Raises `EngineError` for a tenant that doesn't exist."""
    async with _working(connections, tenant.name) as connection:
        found = (await catalog.find(connection, tenant.name)).require(tenant)
        await _remove(connections, connection, tenant.name, purpose)
        helper = await _make(connection, tenant, found, purpose)
    try:
        yield helper
    finally:
        await _leave(connections, tenant, purpose, helper)


async def end_helpers(connections: PostgresConnections, name: str) -> int:
    """Removes the helpers that this tenant has, with their sessions, and closes its database again if it is revoked.
    Returns how many there were."""
    check_name(name)
    async with _working(connections, name) as connection:
        ended = [await _remove(connections, connection, name, purpose) for purpose in PURPOSES]
        await _close_again(connection, name)
    return sum(ended)


async def left(connections: PostgresConnections, names: Sequence[str], *, remove: bool) -> list[str]:
    """The helpers of these tenants that may not log in any more and have no session; with `remove`, removes them."""
    async with connections.admin() as connection:
        found = await connection.fetch(_LEFT, list(PURPOSES))
    places = [(account.rpartition(HELPER_SEPARATOR), account) for account in (row["rolname"] for row in found)]
    theirs = [(name, purpose, account) for (name, _, purpose), account in places if name in set(names)]
    for name, purpose, account in theirs if remove else ():
        async with _working(connections, name) as connection:
            # Not that of a dump that has begun meanwhile.
            if account in {row["rolname"] for row in await connection.fetch(_LEFT, list(PURPOSES))}:
                await _remove(connections, connection, name, purpose)
                await _close_again(connection, name)
    return [account for _, _, account in theirs]


@asynccontextmanager
async def _working(connections: PostgresConnections, name: str) -> AsyncIterator[Any]:
    async with (
        connections.locked(name) as connection,
        ending_blockers(connections, name, patience=_HINDERED_SECONDS),
    ):
        yield connection


async def _make(connection: Any, tenant: Tenant, found: catalog.TenantObjects, purpose: str) -> Helper:
    password = secrets.token_urlsafe(32)
    role = f'"{helper_name(tenant.name, purpose)}"'
    row = await connection.fetchrow(
        "SELECT rolname::text AS administrator, rolsuper OR rolbypassrls AS bypasses,"
        " (now() + make_interval(secs => $1))::text AS until"
        " FROM pg_roles WHERE rolname = current_user",
        _LOGIN_SECONDS,
    )
    reads_everything = purpose != LOAD and row["bypasses"]
    written = [
        f"CREATE ROLE {role} LOGIN NOCREATEDB NOCREATEROLE {'BYPASSRLS' if reads_everything else ''} "
        f"CONNECTION LIMIT {_CONNECTIONS} PASSWORD {literal(verifier(password, iterations=_ITERATIONS))} "
        f"VALID UNTIL {literal(row['until'])}",
        f'GRANT CONNECT ON DATABASE "{tenant.name}" TO {role}',
    ]
    if purpose == LOAD:
        written += [
            f'GRANT "{tenant.name}" TO {role} WITH INHERIT TRUE, SET TRUE',
            f"ALTER ROLE {role} SET role = {literal(tenant.name)}",
        ]
    else:
        # What a login has made without becoming the tenant, such as large objects, is its own.
        written += [
            f'GRANT "{one}" TO {role} WITH INHERIT TRUE, SET FALSE'
            for one in (tenant.name, *found.logins, *found.users)
        ]
    if found.temp_limit:
        written.append(f"ALTER ROLE {role} SET temp_file_limit = {literal(statements.TEMP_FILE_LIMIT)}")
    if not found.open:
        if not found.revoked:
            raise EngineError(f"{tenant.name} is on this host in part")
        # Its roles may not log in, and others have no CONNECT: the helper alone gets in.
        written.append(statements.open_for_service(tenant.name))
    # The host's tenants commit to the same disk. What a crash takes of an account, the next dump makes.
    await connection.execute(statements.NOT_DURABLY + "; ".join(written))
    name = helper_name(tenant.name, purpose)
    oid = await connection.fetchval("SELECT oid FROM pg_roles WHERE rolname = $1", name)
    return Helper(name, oid, password, reads_everything, row["administrator"])


async def _leave(connections: PostgresConnections, tenant: Tenant, purpose: str, helper: Helper) -> None:
    """Removes what the next dump would remove too: a failure here is no failure of the dump."""
    try:
        async with _working(connections, tenant.name) as connection:
            # Not that of a later dump.
            if await connection.fetchval("SELECT count(*) FROM pg_roles WHERE oid = $1", helper.oid):
                await _remove(connections, connection, tenant.name, purpose)
                await _close_again(connection, tenant.name)
    except EngineError as error:
        log.warning("dump_account_left", tenant=tenant.name, reason=str(error))


async def _remove(connections: PostgresConnections, connection: Any, name: str, purpose: str) -> bool:
    """Removes the helper for this purpose; returns whether there was one. The caller holds the tenant's lock."""
    role = helper_name(name, purpose)
    if not await connection.fetchval("SELECT count(*) FROM pg_roles WHERE rolname = $1", role):
        return False
    await connection.execute(f'{statements.NOT_DURABLY}ALTER ROLE "{role}" NOLOGIN CONNECTION LIMIT 0')
    await end_sessions_of(connection, name, role)
    # One that a crash brings back may not log in for long. What was loaded is as durable as the end of its account.
    await drop_role(connections, connection, role, durably=purpose == LOAD)
    return True


async def _close_again(connection: Any, name: str) -> None:
    """Closes the database again after a revocation, unless another helper still works there: that one closes it at its
    end."""
    found = await catalog.find(connection, name)
    helpers = set(names_of([name])).intersection(found.helpers)
    if found.database and found.open and found.revoked and not helpers:
        await connection.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')


def helper_name(name: str, purpose: str) -> str:
    return f"{name}{HELPER_SEPARATOR}{purpose}"


def names_of(names: Sequence[str]) -> list[str]:
    return [helper_name(name, purpose) for name in names for purpose in PURPOSES]
