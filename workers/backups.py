"""What happens to backups by themselves: they are taken when their policies say so, and go when their time is over.

The rows say what is due, so nothing is lost while no worker runs.
"""

import asyncio
from datetime import datetime, timedelta
from time import monotonic
from uuid import UUID

import structlog

from app.backups.admission import admit_waiting
from app.backups.keeping import expire, find_expiring, find_removable, is_under_way, remove
from app.backups.policies import BackupTerms
from app.backups.scheduling import enrol, find_due, request_due
from app.backups.storage.store import BackupStore
from app.backups.testing import find_due_tests, request_due_test
from app.core.clock import utc_now
from workers.due import work_off

_INTERVAL_SECONDS = 1.0
_LEISURE_LOOKS = 30
"""What is in no hurry is looked for at each of so many looks."""
_REMOVAL_SECONDS = 5.0
_STRAYS_SECONDS = 21_600.0
"""Between two walks over the whole store."""
_STRAY_AFTER = timedelta(days=1)

log = structlog.get_logger(__name__)


async def serve_backups(terms: BackupTerms) -> None:
    """Runs until cancelled. Any number may run concurrently."""
    # Where an hour takes seconds, leisure does too.
    leisure = max(1, min(_LEISURE_LOOKS, round(terms.hour.total_seconds() / 60)))
    looks = 0
    while True:
        try:
            if looks % leisure == 0:
                await enrol(terms)
                await end_expired_backups(terms)
            await take_due_backups(terms)
            await admit_waiting(terms.limits)
            await test_due_backups(terms)
        except Exception as fault:
            # Our own database is unavailable. What is due stays due.
            log.warning("backups_waiting", reason=str(fault) or type(fault).__name__)
        looks += 1
        await asyncio.sleep(_INTERVAL_SECONDS)


async def take_due_backups(terms: BackupTerms) -> None:
    """Asks for what the policies say is due, one transaction for each database."""

    async def ask(database: UUID) -> None:
        await request_due(terms, database)

    await work_off(find_due, ask, failure="backup_not_scheduled")


async def test_due_backups(terms: BackupTerms) -> None:
    """Has backups tested whose time it is, the longest due first, as many as there is room for."""

    async def find(most: int, /, *, without: list[UUID]) -> list[UUID]:
        return await find_due_tests(most, terms.tests_at_once, without=without)

    await work_off(find, request_due_test, failure="restore_test_not_begun")


async def end_expired_backups(terms: BackupTerms) -> None:
    """Ends what need not be kept any longer, one transaction for each database."""

    async def end(database: UUID) -> None:
        if ended := await expire(terms, database):
            log.info("backups_expired", database=str(database), count=ended)

    await work_off(find_expiring, end, failure="backups_not_expired")


async def remove_ended_backups(store: BackupStore, region: str) -> None:
    """Removes from the store what has ended, of this region's databases. Runs until cancelled; any number may run
    concurrently. A store that can't be reached holds up nothing else."""

    async def find(most: int, /, *, without: list[UUID]) -> list[UUID]:
        return await find_removable(region, most, without=without)

    async def take_away(backup: UUID) -> None:
        await remove(store, backup)

    swept_at = monotonic() - _STRAYS_SECONDS - 1
    while True:
        try:
            await work_off(find, take_away, failure="backup_not_removed")
            if monotonic() - swept_at > _STRAYS_SECONDS:
                await remove_stray_objects(store, utc_now() - _STRAY_AFTER)
                swept_at = monotonic()
        except Exception as fault:
            log.warning("backup_removals_waiting", reason=str(fault) or type(fault).__name__)
        await asyncio.sleep(_REMOVAL_SECONDS)


async def remove_stray_objects(store: BackupStore, before: datetime) -> None:
    """Removes from the store what attempts that died have left, last written before that moment."""
    removed = [stray.name async for stray in store.remove_strays(before, is_under_way)]
    if removed:
        log.info("stray_objects_removed", count=len(removed))
