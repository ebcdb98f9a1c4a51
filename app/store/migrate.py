"""Brings our own database to this version's tables, however many processes start at the same time.

The owner of the tables runs the migrations. The service logs in with a lesser role, see `app.store.service_role`, and
waits for that; an installation that has only the owner's role goes on with it.
"""

import asyncio
import contextlib
import io
import re
from pathlib import Path

import msgspec
import structlog
from asyncpg import QueryCanceledError

from app.store.rights import renew_rights
from app.store.session import fetch, fetch_one, fetch_scalar, fetch_value, long_transaction

_APP = "headwater"
_FOLDER = Path(__file__).parent / "migrations"
_ID = re.compile(r'^ID = "(.+)"$', re.MULTILINE)
"""The line of a migration's file that has its id."""
_LOCK = 0x4845_4144_5741_5445
"""Our advisory lock among any others: `HEADWATE` read as a number."""

_BASELINE = "2026-11-22T06:30:00:000000"
"""The migration that makes the schema of release 0.1.0."""
_BEFORE_BASELINE = 35
"""How many migrations led to that schema before the release."""
_LEFT_OVER = (
    "DROP FUNCTION take_question_place"
    "(bigint, bigint, bigint, text, text, double precision, double precision, integer)",
    "DROP INDEX webhook_deliveries_over",
)
"""Statements that drop what those migrations made, nothing uses, and the baseline leaves out."""


_PATIENCE_SECONDS = 60.0
"""How long a process that starts waits for somebody else to migrate."""
_LOOK_SECONDS = 0.5

_TABLES_SECONDS = 120.0
"""How long a process tries to lock all tables."""
_TABLES = """
SELECT string_agg(oid::regclass::text, ', ' ORDER BY oid) FROM pg_class
WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
  AND relname <> 'migration'
"""
_SHORT_WAIT = "SELECT (extract(epoch FROM current_setting('deadlock_timeout')::interval) * 500)::integer::text"
"""In milliseconds: half of the time after which PostgreSQL looks for a deadlock."""

_STANDING = """
SELECT m.oid IS NOT NULL AND has_table_privilege(m.oid, 'SELECT') AS readable,
       coalesce(pg_has_role(m.relowner, 'USAGE'), pg_has_role(d.datdba, 'USAGE')) AS owner, current_user AS role
FROM pg_database d LEFT JOIN pg_class m ON m.oid = to_regclass('migration')
WHERE d.datname = current_database()
"""
"""An empty database counts as owned by the owner of the database, also on servers where everybody may make tables."""

log = structlog.get_logger(__name__)


class MigrationFailed(Exception):
    """A migration did not run to its end; our database is as it was before. Or it has to be run by somebody else."""


class _TablesInUse(Exception):
    """Somebody else uses a table; nothing has changed."""


class _Standing(msgspec.Struct, frozen=True):
    """What the role that we have logged in with may do."""

    readable: bool
    """Whether it may read which migrations have run, and there is such a table."""
    owner: bool
    role: str


async def follow_migrations() -> None:
    """Makes sure, when a process starts, that all migrations have run. As the owner of the tables it runs those that
    have not; with a lesser role it waits, for a minute at most, until the owner has run them. Raises `MigrationFailed`
    after that."""
    standing = await _read_standing()
    if standing.owner:
        log.info("store_role_owns_tables", role=standing.role, advice=ADVICE)
        await migrate()
        return
    if await _is_current():
        return
    log.info("waiting_for_migrations", role=standing.role)
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            while True:
                await asyncio.sleep(_LOOK_SECONDS)
                if await _is_current():
                    return
    except TimeoutError:
        await require_current()


async def require_current() -> None:
    """The same without waiting, and without a log line about the role: for one command of an operator's."""
    standing = await _read_standing()
    if standing.owner:
        await migrate()
    elif not await _is_current():
        raise MigrationFailed(
            "our own database is not at this version's tables, and the role"
            f" {standing.role} of HEADWATER_CONTROL_DSN may not change them. Run 'headwater migrate' with its"
            " administrator in HEADWATER_CONTROL_ADMIN_DSN"
        )


ADVICE = (
    "name a lesser role in HEADWATER_CONTROL_DSN and this one in HEADWATER_CONTROL_ADMIN_DSN, and run 'headwater"
    " migrate', which makes it"
)
"""Advice for an operator whose service logs in as the owner of the tables."""


async def _read_standing() -> _Standing:
    found = await fetch_one(_Standing, _STANDING)
    assert found is not None, "it is about the database that we are connected to"
    return found


async def _is_current() -> bool:
    return (await _read_standing()).readable and _known() <= await _that_ran()


async def migrate() -> None:
    """Runs the migrations that have not run yet, as the owner of the tables. One process does so, the others wait for
    it and then find nothing to do. Roles that have rights here get the rights of this version.

    All of it is one transaction, the list of what has run included: a process that dies in the middle leaves nothing
    behind and holds nobody up. It takes as long as its indexes need. Statements that use the tables meanwhile wait for
    its end, for as long as a statement may take. Raises `MigrationFailed`.
    """
    if _known() <= await _that_ran():
        return
    deadline = asyncio.get_running_loop().time() + _TABLES_SECONDS
    while True:
        try:
            async with long_transaction():
                await lock_migrations()
                await _take_tables()
                await _adopt_unreleased()
                await _forwards("all")
                await renew_rights()
            return
        except _TablesInUse as fault:
            if asyncio.get_running_loop().time() > deadline:
                raise MigrationFailed(str(fault)) from None
            log.info("tables_in_use", reason=str(fault))
            await asyncio.sleep(_LOOK_SECONDS)


async def _take_tables() -> None:
    """Locks all tables, until the end of the transaction. Raises `_TablesInUse` before PostgreSQL would look for a
    deadlock: requests take locks in an order of their own, and PostgreSQL would end one of them."""
    tables = await fetch_value(str, _TABLES)
    if tables is None:
        return
    await fetch("SELECT set_config('statement_timeout', $1::text, true)", await fetch_scalar(str, _SHORT_WAIT))
    try:
        await fetch(f"LOCK TABLE {tables} IN ACCESS EXCLUSIVE MODE")
    except QueryCanceledError:
        raise _TablesInUse(
            f"for {_TABLES_SECONDS:.0f} s a table of our own was always in use, by a long transaction on our own"
            " database, such as a dump: let it end, then run this again"
        ) from None
    await fetch("SET LOCAL statement_timeout = 0")


async def lock_migrations() -> None:
    """Keeps everybody else from changing tables or rights until the end of the transaction. Call it in a
    `long_transaction`: it waits for whoever does so now."""
    await fetch("SET LOCAL lock_timeout = 0")
    await fetch("SELECT pg_advisory_xact_lock($1)", _LOCK)


def _known() -> set[str]:
    """The ids of this version's migrations. Their files are read, not imported: most starts have none to run, and to
    import them and Piccolo's tools takes a sixth of a start's processor time."""
    return {_id_of(file) for file in _FOLDER.glob(f"{_APP}_*.py")}


def _id_of(file: Path) -> str:
    found = _ID.search(file.read_text())
    assert found is not None, f"{file} has no id"
    return found[1]


async def _that_ran() -> set[str]:
    if not (await fetch("SELECT to_regclass('migration') IS NOT NULL AS known"))[0]["known"]:
        return set()
    return {row["name"] for row in await fetch("SELECT name FROM migration WHERE app_name = $1", _APP)}


async def _adopt_unreleased() -> None:
    """A database that was made before 0.1.0 has the baseline's schema under the names of earlier migrations: the
    baseline is recorded, and does not run."""
    ran = {name for name in await _that_ran() if name <= _BASELINE}
    if not ran or _BASELINE in ran:
        return
    if len(ran) != _BEFORE_BASELINE:
        raise MigrationFailed(
            f"this database has {len(ran)} of the {_BEFORE_BASELINE} migrations from before release 0.1.0. Start the"
            " Headwater of commit 0b92163 on it once, which runs the others; then start this one"
        )
    for statement in _LEFT_OVER:
        await fetch(statement)
    await _forwards(_BASELINE, fake=True)


async def _forwards(migration: str, *, fake: bool = False) -> None:
    from piccolo.apps.migrations.commands.forwards import ForwardsMigrationManager  # noqa: PLC0415  see _known

    # Piccolo prints its progress, which doesn't belong on a service's standard output.
    with contextlib.redirect_stdout(io.StringIO()) as report:
        result = await ForwardsMigrationManager(app_name=_APP, migration_id=migration, fake=fake).run()
    if not result.success:
        raise MigrationFailed(result.message or report.getvalue())
