"""Brings our own database to this version's tables, however many processes start at once."""

import contextlib
import io

from piccolo.apps.migrations.commands.forwards import ForwardsMigrationManager

from app.store.session import fetch, transaction

_LOCK = 0x4845_4144_5741_5445
"""Our advisory lock among any others: `HEADWATE` read as a number."""


class MigrationFailed(Exception):
    """A migration did not run to its end; our database is as it was before."""


async def migrate() -> None:
    """Runs what has not run yet. One process does so, the others wait for it and then find nothing to do.

    All of it is one transaction, the list of what has run included: a process that dies in the middle leaves
    nothing behind and holds nobody up. Raises `MigrationFailed`.
    """
    async with transaction():
        await fetch("SET LOCAL lock_timeout = 0")
        await fetch("SELECT pg_advisory_xact_lock($1)", _LOCK)
        # Piccolo reports its progress with print; a service's standard output is not the place for it.
        with contextlib.redirect_stdout(io.StringIO()) as report:
            result = await ForwardsMigrationManager(app_name="headwater", migration_id="all").run()
        if not result.success:
            raise MigrationFailed(result.message or report.getvalue())
