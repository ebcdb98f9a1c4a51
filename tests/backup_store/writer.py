"""`python -m tests.backup_store.writer FOLDER BACKUP`: writes a dump without an end to a folder, for a test that
kills it."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

from tests.support.backups import CHUNK, folder_store


async def _endless() -> AsyncIterator[bytes]:
    while True:
        yield os.urandom(CHUNK)


async def _main(folder: Path, backup: UUID) -> None:
    store = folder_store(folder)
    await store.write(backup, store.new_key(backup), _endless())


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1]), UUID(sys.argv[2])))
