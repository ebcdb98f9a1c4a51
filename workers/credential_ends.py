"""Ends what ends by itself: overlaps of rotations, and users with a time."""

import asyncio

import structlog

from app.credentials.ends import begin_due, find_due
from workers.due import work_off

_INTERVAL_SECONDS = 1.0

log = structlog.get_logger(__name__)


async def end_due_credentials() -> None:
    """Runs until cancelled. Any number may run concurrently: what is due has begun once. What became due while nothing
    ran begins at the first look."""
    while True:
        try:
            await work_off(find_due, begin_due, failure="credential_end_failed")
        except Exception as fault:
            # Our own database may be away; what is due stays due.
            log.warning("credential_ends_waiting", reason=str(fault) or type(fault).__name__)
        await asyncio.sleep(_INTERVAL_SECONDS)
