"""Copying a whole database on its host at once, where its file system shares blocks between files (reflink).

PostgreSQL 18 copies by `file_copy_method = clone`: on XFS and btrfs in a moment, whatever the size. Where blocks can't
be shared that setting copies them all, without a word; so the host is measured once, and the answer is kept with it: as
the comment of a role that is there for nothing else, because only who made a role can write one.
"""

import asyncio
import contextlib
import time
from typing import Any

import asyncpg
import msgspec
import structlog

from app.engines.base import COPY_HELD_SECONDS, EngineLimits, Tenant
from app.engines.dumping import Copied
from app.engines.naming import literal
from app.engines.postgres import freezing, statements
from app.engines.postgres.catalog import TenantObjects, find
from app.engines.postgres.connections import PostgresConnections
from app.engines.postgres.dumps import giving
from app.engines.postgres.dumps.exchange import aside_name, drop_aside, empty_of_sessions, renamed
from app.engines.postgres.dumps.helpers import names_of
from app.engines.postgres.guard import IS_GUARDED, TEMPLATE

_OLDEST = 180000
_FACT = "headwater_host"
_SHARES, _COPIES = "its file system shares blocks", "its file system copies blocks"
_PROBE, _PROBE_COPY = "headwater_probe", "headwater_probe_copy"
_PROBE_BYTES = 128 * 2**20
_ROUNDS = 4
_ROW_BYTES = 1900
"""Four rows fill a page."""
_FASTER = 4
"""The least factor by which sharing blocks is faster than copying them: it is faster by hundreds."""
_POLL_SECONDS = 0.02
_END = """
SELECT count(pg_terminate_backend(a.pid)) FROM pg_stat_activity a JOIN pg_roles r ON r.oid = a.usesysid
WHERE a.datname = $1 AND NOT r.rolsuper AND a.pid <> pg_backend_pid()
"""
# Of the source's roles on its own database, which DROP OWNED in the copy would take.
_RIGHTS = """
SELECT format('GRANT %s ON DATABASE %I TO %I', a.privilege_type, d.datname, r.rolname) AS statement
FROM pg_database d CROSS JOIN LATERAL aclexplode(d.datacl) a JOIN pg_roles r ON r.oid = a.grantee
WHERE d.datname = $1 AND r.rolname = $2
"""
# By what we can't end: the server would wait for it in vain.
_HELD_BY_OTHERS = """
SELECT EXISTS (SELECT FROM pg_prepared_xacts WHERE database = current_database())
    OR EXISTS (SELECT FROM pg_stat_activity a JOIN pg_roles r ON r.oid = a.usesysid
               WHERE a.datname = current_database() AND r.rolsuper AND a.pid <> pg_backend_pid())
"""
_NAMED = """
SELECT count(*) FROM pg_shdepend WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND refclassid = 'pg_authid'::regclass AND refobjid = ANY (SELECT oid FROM pg_roles WHERE rolname = ANY($1::name[]))
"""

log = structlog.get_logger(__name__)


async def measure(connections: PostgresConnections, connection: Any) -> None:
    """Finds out once whether the host's file system shares blocks, and stores the answer on the host."""
    known = await connection.fetchrow(
        "SELECT (SELECT oid FROM pg_roles WHERE rolname = $1) AS fact,"
        " current_setting('server_version_num')::int AS version",
        _FACT,
    )
    if known["fact"] or known["version"] < _OLDEST:
        return
    template = TEMPLATE if await connection.fetchval(f"SELECT {IS_GUARDED}") else "template0"
    drop = f"DROP DATABASE IF EXISTS {_PROBE_COPY}"
    await connection.execute("SELECT pg_advisory_lock(hashtextextended('headwater probe', 0))")
    await connection.execute(drop)
    await connection.execute(f"DROP DATABASE IF EXISTS {_PROBE}")
    await _timed(connection, _PROBE, template, "clone")
    await connection.execute(
        f"REVOKE ALL ON DATABASE {_PROBE} FROM PUBLIC; ALTER DATABASE {_PROBE} ALLOW_CONNECTIONS true"
    )
    async with connections.admin_in(_PROBE) as inside:
        await inside.execute(
            f"CREATE SCHEMA probe; CREATE UNLOGGED TABLE probe.probe AS SELECT repeat('x', {_ROW_BYTES}) AS x"  # noqa: S608  constants
            f" FROM generate_series(1, {_PROBE_BYTES // 2048})"
        )
    # The first ones wait until the server, and then its kernel, have written the probe to the disk; and whatever else
    # the machine does adds to some of them.
    taken = [
        await _timed(connection, _PROBE_COPY, source, method, after=drop)
        for source, method in [(template, "clone"), (_PROBE, "copy"), (_PROBE, "clone")] * _ROUNDS
    ]
    nothing, copied, shared = (min(taken[turn::3]) for turn in range(3))
    await connection.execute(f"DROP DATABASE {_PROBE}")
    shares = (copied - nothing) > _FASTER * max(shared - nothing, 0.001)
    await connection.execute(
        f"CREATE ROLE {_FACT} NOLOGIN; COMMENT ON ROLE {_FACT} IS {literal(_SHARES if shares else _COPIES)}"
    )
    log.info("file_copies_measured", shares_blocks=shares, nothing=nothing, shared=shared, copied=copied)


async def _timed(connection: Any, name: str, template: str, method: str, *, after: str = "SELECT") -> float:
    began = time.monotonic()
    await connection.execute(f"SET file_copy_method = {method}")
    try:
        await connection.execute(
            f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY ALLOW_CONNECTIONS false"
        )
    finally:
        await connection.execute("RESET file_copy_method")
    taken = time.monotonic() - began
    await connection.execute(after)
    return taken


async def shares_blocks(connection: Any) -> bool:
    said: str | None = await connection.fetchval(
        "SELECT shobj_description(oid, 'pg_authid') FROM pg_roles WHERE rolname = $1", _FACT
    )
    return said == _SHARES


async def copy(
    connections: PostgresConnections, connection: Any, source: Tenant, target: Tenant, marker: str
) -> Copied:
    """Copies the source's database over the target's. The caller holds both tenants' locks. A repetition copies
    again."""
    theirs = (await find(connection, source.name)).require(source)
    mine = (await find(connection, target.name)).require(target)
    await drop_aside(connection, target.name)
    if not await _can_be_copied(connections, source, theirs):
        return Copied(done=False)
    copied = await _copied(connections, connection, source.name, aside_name(target.name), mine)
    if not copied.done:
        return copied
    if not await _given(connections, connection, source, target, theirs):
        await drop_aside(connection, target.name)
        return msgspec.structs.replace(copied, done=False)
    await empty_of_sessions(connections, connection, aside_name(target.name))
    await empty_of_sessions(connections, connection, target.name)
    opened = "" if mine.revoked else f'; GRANT CONNECT ON DATABASE "{target.name}" TO "{target.name}"'
    opened += "" if mine.revoked else f'; ALTER DATABASE "{target.name}" ALLOW_CONNECTIONS true'
    await connection.execute(
        f"BEGIN; {renamed(target.name, aside_name(target.name))};"
        f' COMMENT ON DATABASE "{target.name}" IS {literal(marker)};'
        f' GRANT CREATE, TEMPORARY ON DATABASE "{target.name}" TO "{target.name}"{opened}; COMMIT'
    )
    await drop_aside(connection, target.name)
    return copied


async def _can_be_copied(connections: PostgresConnections, source: Tenant, theirs: TenantObjects) -> bool:
    """Whether the source can be copied. The copy of a database with read-only users, or two logins, has rights that
    only a superuser can take; that of a frozen one would be frozen; and a dump under way would be ended with the other
    sessions."""
    if theirs.readers or len(theirs.logins) > 1 or not theirs.open or theirs.revoked:
        return False
    if not set(names_of([source.name])).isdisjoint(theirs.helpers):
        return False
    async with connections.admin_in(source.name) as inside:
        return not await inside.fetchval(_HELD_BY_OTHERS) and not await freezing.is_begun(inside)


async def _copied(
    connections: PostgresConnections, connection: Any, source: str, aside: str, mine: TenantObjects
) -> Copied:
    """Ends the source's sessions, and has the server copy. New sessions wait meanwhile, because copying holds a lock
    that logins need; it is the server that gives up after a while, so that they don't wait longer when this process
    dies."""
    limits = EngineLimits(connections=max(1, mine.connections - statements.SERVICE_HEADROOM))
    await _write_to_disk(connection)
    async with connections.admin_alone() as other:
        began = time.monotonic()
        ending = asyncio.create_task(_end_sessions(other, source))
        done = True
        try:
            await connection.execute(f"SET file_copy_method = clone; SET statement_timeout = '{COPY_HELD_SECONDS}s'")
            await connection.execute(
                f'CREATE DATABASE "{aside}" TEMPLATE "{source}" STRATEGY FILE_COPY ALLOW_CONNECTIONS false'
                f" CONNECTION LIMIT {limits.connections + statements.SERVICE_HEADROOM:d}"
            )
        except asyncpg.PostgresError as error:
            # It took too long; or it is used by a prepared transaction or an operator; or there is no room.
            log.info("database_not_copied", source=source, reason=str(error))
            done = False
        finally:
            held = time.monotonic() - began
            ending.cancel()
            await asyncio.gather(ending, return_exceptions=True)
            if not connection.is_closed():
                await connection.execute("RESET file_copy_method; RESET statement_timeout")
    return Copied(done=done, held_seconds=held)


async def _write_to_disk(connection: Any) -> None:
    """Does what the server does first when it copies: done before, it holds nobody up."""
    with contextlib.suppress(asyncpg.InsufficientPrivilegeError):
        await connection.execute("CHECKPOINT")


async def _end_sessions(connection: Any, name: str) -> None:
    while True:
        await connection.fetchval(_END, name)
        await asyncio.sleep(_POLL_SECONDS)


async def _given(
    connections: PostgresConnections, connection: Any, source: Tenant, target: Tenant, theirs: TenantObjects
) -> bool:
    """Gives the copy to the target; returns whether nothing in it names a role of the source any more."""
    aside = aside_name(target.name)
    await connection.execute(statements.open_for_service(aside))
    roles = theirs.roles(source)
    async with connections.admin_in(aside) as inside:
        for role in roles:
            keeping = [row["statement"] for row in await inside.fetch(_RIGHTS, source.name, role)]
            await giving.give_all(inside, aside, role, target.name, keeping)
        named: int = await inside.fetchval(_NAMED, roles)
    return not named
