"""`python -m tests.store.hold_lock DSN UUID`: takes a database's lock, says so, and keeps it until killed."""

import asyncio
import sys
from uuid import UUID

from app.store.locks import database_lock
from app.store.session import connected


async def main(dsn: str, database: str) -> None:
    async with connected(dsn), database_lock(UUID(database)):
        sys.stdout.write("held\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
