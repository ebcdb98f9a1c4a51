"""What happens to backups by themselves: they are taken when their policies say so, and go when their time is over.

The rows say what is due, so nothing is lost while no worker runs.
"""

from itertools import count
from uuid import UUID

import structlog

from app.backups.admission import admit_waiting
from app.backups.policies import BackupTerms
from app.backups.restore_tests import find_due_tests, request_due_test
from app.backups.retention import expire, find_expiring, find_removable, remove
from app.backups.scheduling import enrol, find_due, request_due
from app.backups.storage.store import BackupStore
from workers.due import repeat, work_off

_INTERVAL_SECONDS = 1.0
_LEISURE_LOOKS = 30
"""Work that is in no hurry is looked for once in so many looks."""
_REMOVAL_SECONDS = 5.0

log = structlog.get_logger(__name__)


async def serve_backups(terms: BackupTerms) -> None:
    """Runs until cancelled. Any number may run concurrently."""
    # Where an hour takes seconds, leisure does too.
    leisure = max(1, min(_LEISURE_LOOKS, round(terms.hour.total_seconds() / 60)))
    looks = count()

    async def look() -> None:
        if next(looks) % leisure == 0:
            await enrol(terms)
            await end_expired_backups(terms)
        await take_due_backups(terms)
        await admit_waiting(terms.limits)
        await test_due_backups(terms)

    await repeat(look, _INTERVAL_SECONDS, failure="backups_waiting")


async def take_due_backups(terms: BackupTerms) -> None:
    """Asks for what the policies say is due, one transaction for each database."""

    async def ask(database: UUID) -> None:
        await request_due(terms, database)

    await work_off(find_due, ask, failure="backup_not_scheduled")


async def test_due_backups(terms: BackupTerms) -> None:
    """Has backups tested whose time it is, the longest due first, as many as there is room for."""

    async def find(most: int, /, *, without: list[UUID]) -> list[UUID]:
        return await find_due_tests(most, terms.tests_at_once, without=without)

    async def begin(database: UUID) -> None:
        await request_due_test(terms, database)

    await work_off(find, begin, failure="restore_test_not_begun")


async def end_expired_backups(terms: BackupTerms) -> None:
    """Ends backups that need not be kept any longer, one transaction for each database."""

    async def find(most: int, /, *, without: list[UUID]) -> list[UUID]:
        return await find_expiring(terms.plans, most, without=without)

    async def end(database: UUID) -> None:
        if ended := await expire(terms, database):
            log.info("backups_expired", database=str(database), count=ended)

    await work_off(find, end, failure="backups_not_expired")


async def remove_ended_backups(store: BackupStore, region: str) -> None:
    """Removes ended backups from the store, of this region and of those without a host. Runs until cancelled; any
    number may run concurrently. A store that can't be reached holds up nothing else."""

    async def find(most: int, /, *, without: list[UUID]) -> list[UUID]:
        return await find_removable(region, most, without=without)

    async def take_away(backup: UUID) -> None:
        await remove(store, backup)

    async def look() -> None:
        await work_off(find, take_away, failure="backup_not_removed")

    await repeat(look, _REMOVAL_SECONDS, failure="backup_removals_waiting")
