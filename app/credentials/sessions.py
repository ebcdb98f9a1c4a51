"""How many sessions each login of a database has open, as far as its host says so at once."""

import asyncio

from app.core.secrets import SecretBox
from app.databases.passwords import tenant_of
from app.databases.records import DatabaseRecord
from app.engines.base import EngineError
from app.hosts.adapters import Adapters, HostRemoved

_SECONDS = 2.0


async def open_sessions(adapters: Adapters, box: SecretBox, record: DatabaseRecord) -> dict[str, int] | None:
    """The number of open sessions by login; a login without sessions may be left out. None when the host doesn't answer
    in time: no reader waits for a host that is away."""
    try:
        async with asyncio.timeout(_SECONDS):
            adapter = await adapters.of_host(record.host_id)
            return await adapter.open_sessions(tenant_of(record, box))
    except (EngineError, HostRemoved, TimeoutError):
        return None
