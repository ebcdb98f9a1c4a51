"""One `create` in a process of its own, which the test kills: `python -m tests.engines.create_once`.

Says `ready` on standard output, and begins with the first line that comes in: a JSON array of engine, address,
tenant and limits. Says `done` when it is.
"""

import asyncio
import sys

import msgspec

from app.contracts.base import Engine
from app.engines.base import AdminAddress, EngineLimits, Tenant
from app.engines.registry import open_adapter
from tests.engines.patience import be_patient

Order = tuple[Engine, AdminAddress, Tenant, EngineLimits]


def say(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


async def main() -> None:
    say("ready")
    engine, address, tenant, limits = msgspec.json.decode(sys.stdin.readline(), type=Order)
    await open_adapter(engine, address).create(tenant, limits)
    say("done")


if __name__ == "__main__":
    be_patient()
    asyncio.run(main())
