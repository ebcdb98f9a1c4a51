"""Brings our own database to this version's tables, however many processes start at the same time."""

import contextlib
import io
import re
from pathlib import Path

from app.store.session import fetch, transaction

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
"""What those made, nothing uses, and the baseline leaves out."""


class MigrationFailed(Exception):
    """A migration did not run to its end; our database is as it was before."""


async def migrate() -> None:
    """Runs what has not run yet. One process does so, the others wait for it and then find nothing to do.

    All of it is one transaction, the list of what has run included: a process that dies in the middle leaves
    nothing behind and holds nobody up. Raises `MigrationFailed`.
    """
    if _known() <= await _that_ran():
        return
    async with transaction():
        await fetch("SET LOCAL lock_timeout = 0")
        await fetch("SELECT pg_advisory_xact_lock($1)", _LOCK)
        await _adopt_unreleased()
        await _forwards("all")


def _known() -> set[str]:
    """The ids of this version's migrations. Their files are read, not imported: most starts have none to run, and to
    import them and Piccolo's means is a sixth of the processor time that a start takes."""
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
