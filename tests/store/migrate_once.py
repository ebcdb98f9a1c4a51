"""`python -m tests.store.migrate_once DSN`: connects, says so, and migrates at the word: the end of its input."""

import asyncio
import sys

from app.store.migrate import migrate
from app.store.session import connected


async def main(dsn: str) -> None:
    async with connected(dsn):
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)
        await migrate()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
