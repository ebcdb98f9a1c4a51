"""`python -m tests.usage.killed_once change|close DSN`: changes databases at random, or closes periods, until it is
killed. What it changed is in `test_journal`, written in the change's own transaction."""

import asyncio
import random
import sys
from datetime import timedelta

from app.store import session
from app.store.session import connected, execute, fetch, transaction
from app.usage import closing
from tests.support.waiting import LIMIT_SECONDS

PERIOD = 1
KEEP = timedelta(days=4000)
_SIZES = (0, 1, 7_340_033, 2**40 + 1)


async def _change() -> None:
    databases = [(row["id"], row["uuid"]) for row in await fetch("SELECT id, uuid FROM databases ORDER BY id")]
    while True:
        id, uuid = random.choice(databases)
        async with transaction():
            # One after the other, so that the journal is in the order of the changes.
            await execute("SELECT FROM usage_meters WHERE database_uuid = $1 FOR UPDATE", uuid)
            if random.random() < 0.5:
                status = random.choice(("active", "paused"))
                await execute("UPDATE databases SET status = $2 WHERE id = $1", id, status)
            else:
                size = random.choice(_SIZES)
                await execute("UPDATE database_usage SET storage_bytes = $2 WHERE database_id = $1", id, size)
            # What holds now, and since when.
            await execute(
                "INSERT INTO test_journal (uuid, at, running, storage)"
                " SELECT d.uuid, m.at, d.status = 'active', u.storage_bytes FROM usage_meters m"
                " JOIN databases d ON d.uuid = m.database_uuid JOIN database_usage u ON u.database_id = d.id"
                " WHERE d.uuid = $1",
                uuid,
            )


async def _close() -> None:
    while True:
        await closing.close(PERIOD, KEEP)


async def _main(what: str, dsn: str) -> None:
    # On a crowded machine a login may take longer than the service waits for one.
    session.CONNECT_SECONDS = LIMIT_SECONDS
    async with connected(dsn, max_size=4):
        await (_change() if what == "change" else _close())


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], sys.argv[2]))
