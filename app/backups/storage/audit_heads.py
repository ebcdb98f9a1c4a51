"""Seals of the audit log, kept out of reach of anyone who changes our own database: objects that are made once and
never replaced, each named by its seal's number and hash."""

import re
from contextlib import suppress
from datetime import datetime

from app.backups.storage.objects import ObjectExists, Objects

FOLDER = "audit"
_NAME = re.compile(rf"{FOLDER}/([0-9]{{12}})-([0-9a-f]{{64}})")


class AuditHeads:
    """Each method raises `StoreUnavailable` and `StoreRefused`."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    async def keep(self, seal: int, digest: str, until: datetime | None) -> None:
        """Keeps the seal; `until` is when it may be deleted, where the store has Object Lock. Call this again and again
        while the seal is the newest: the process that made it may have died before it was locked."""
        name = f"{FOLDER}/{seal:012}-{digest}"
        with suppress(ObjectExists):
            await self._objects.create(name, b"")
        await self._objects.keep([name], until)

    async def all(self) -> list[tuple[int, str]]:
        """Each seal's number and hash. Two of one number say that the chain was begun anew from an older copy."""
        names = [item.name async for item in self._objects.list(FOLDER)]
        found = (_NAME.fullmatch(name) for name in names)
        return sorted((int(one[1]), one[2]) for one in found if one)
