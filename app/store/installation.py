"""What distinguishes this installation from others that use the same hosts."""

from datetime import datetime
from uuid import UUID

import msgspec

from app.store.session import fetch_one


class InstallationState(msgspec.Struct, frozen=True):
    id: UUID
    now: datetime
    """The time by our own database's clock."""


async def read_installation() -> InstallationState:
    found = await fetch_one(InstallationState, "SELECT id, now() AS now FROM installation")
    assert found is not None, "a migration writes the one row"
    return found
