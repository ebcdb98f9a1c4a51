"""`python -m tests.store.migrate_once DSN`: connects, says so, and does at the word, the end of its input, what
a process does about migrations when it starts."""

import asyncio
import sys

from app.store.migrate import follow_migrations
from app.store.session import connected


async def main(dsn: str) -> None:
    async with connected(dsn):
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)
        await follow_migrations()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
