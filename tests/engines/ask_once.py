"""One statement of a question in a process of its own, which the test kills: `python -m tests.engines.ask_once`.

Takes a JSON array of engine, address, tenant, the reader's password (null to write) and SQL from standard input. Says
`begun` when it is about to run it.
"""

import asyncio
import sys

import msgspec

from app.contracts.base import Engine
from app.engines.base import AdminAddress, Tenant
from app.engines.querying import QueryLimits
from app.engines.registry import open_adapter
from tests.engines.create_once import say
from tests.engines.patience import be_patient

Order = tuple[Engine, AdminAddress, Tenant, str | None, str]
LIMITS = QueryLimits(seconds=600, rows=10)


async def main() -> None:
    engine, address, tenant, password, sql = msgspec.json.decode(sys.stdin.readline(), type=Order)
    adapter = open_adapter(engine, address)
    if password is not None:
        async with adapter.reading(tenant, password, LIMITS) as reading:
            say("begun")
            await reading.read(sql)
        return
    async with adapter.writing(tenant, LIMITS) as writing:
        say("begun")
        await writing.write(sql)


if __name__ == "__main__":
    be_patient()
    asyncio.run(main())
