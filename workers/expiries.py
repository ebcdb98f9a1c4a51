"""What ends by itself: databases at their `expires_at`, which is announced an hour ahead, overlaps of rotations, and
users with a time.

The rows say what is due, so nothing is lost while no worker runs: it is done at the next look.
"""

from datetime import timedelta
from uuid import UUID

import structlog

from app.core.settings import Settings
from app.credentials.ends import begin_due, find_due
from app.databases.expiry import find_expired, find_unannounced
from app.provisioning.service import announce_expiry, delete_expired
from app.quotas.plans import Plans
from workers.due import repeat, work_off

_INTERVAL_SECONDS = 1.0

log = structlog.get_logger(__name__)


async def serve_expiries(plans: Plans, settings: Settings) -> None:
    """Runs until cancelled. Any number may run concurrently."""
    grace = timedelta(seconds=settings.deletion_grace_seconds)
    await repeat(lambda: end_expired(plans, grace), _INTERVAL_SECONDS, failure="expiries_waiting")


async def serve_credential_ends() -> None:
    """Runs until cancelled. Any number may run concurrently: what is due is begun once."""

    async def look() -> None:
        await work_off(find_due, begin_due, failure="credential_end_failed")

    await repeat(look, _INTERVAL_SECONDS, failure="credential_ends_waiting")


async def end_expired(plans: Plans, grace: timedelta) -> None:
    """Does what is due now, one transaction for each database. A database that fails doesn't hold up the others."""

    async def announce(database: UUID) -> None:
        await announce_expiry(plans, database)

    async def delete(database: UUID) -> None:
        if await delete_expired(plans, database, grace):
            log.info("database_expired", database=str(database))

    await work_off(find_expired, delete, failure="expiry_failed")
    await work_off(find_unannounced, announce, failure="expiry_failed")
