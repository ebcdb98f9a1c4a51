"""`python -m tests.store.migrate_once DSN`: one process that brings the database to this version's tables."""

import asyncio
import sys

from app.store.migrate import migrate
from app.store.session import connected


async def main(dsn: str) -> None:
    async with connected(dsn):
        await migrate()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
