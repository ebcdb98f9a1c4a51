"""Kills one process after the other, and takes the time until what needs it works again."""

import asyncio
import logging
import math
import random
import signal
import time
from collections import defaultdict
from dataclasses import dataclass, field

from app.contracts.base import Engine
from tests.e2e.patient_client import PatientClient
from tests.support.stack import PARTS, LiveStack
from tests.support.waiting import until

log = logging.getLogger(__name__)

_HEALTHY_SECONDS = 11.0
"""A part that ran for longer since its last start is started again without delay (`app.local.supervisor`)."""


@dataclass
class Recoveries:
    """`seconds` are those from the kill until a new database of each engine was active, by the part killed."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    @property
    def kills(self) -> int:
        return sum(map(len, self.seconds.values()))

    def lines(self) -> list[str]:
        """p50, p95 and the longest, in seconds, of each part and of all."""
        everything = [one for some in self.seconds.values() for one in some]
        return [_line(part, some) for part, some in sorted({**self.seconds, "all": everything}.items())]


def _line(part: str, recoveries: list[float]) -> str:
    found = sorted(recoveries)
    p50, p95 = (found[math.ceil(share * len(found)) - 1] for share in (0.5, 0.95))
    return f"{part}: {len(found)} kills, recovery p50 {p50:.1f} s, p95 {p95:.1f} s, longest {found[-1]:.1f} s"


async def kill_parts(
    stack: LiveStack, client: PatientClient, engines: tuple[Engine, ...], kills: int, chance: random.Random
) -> Recoveries:
    """So many, each when the one before is recovered from. A part that is down already counts too."""
    recoveries, back = Recoveries(), dict.fromkeys(PARTS, 0.0)
    while recoveries.kills < kills:
        await asyncio.sleep(chance.uniform(0.1, 1))
        part = chance.choice(await until(lambda: _rested(back)))
        killed = time.monotonic()
        stack.send_signal(part, signal.SIGKILL)
        await asyncio.gather(*(_probe(client, engine) for engine in engines))
        back[part] = time.monotonic()
        recoveries.seconds[part].append(back[part] - killed)
        log.info("%s: %s killed, recovered after %.1f s", recoveries.kills, part, recoveries.seconds[part][-1])
    return recoveries


def _rested(back: dict[str, float]) -> list[str]:
    """Those that have run long enough."""
    return [part for part, at in back.items() if time.monotonic() - at > _HEALTHY_SECONDS]


async def _probe(client: PatientClient, engine: Engine) -> None:
    """A new database, until it is active; then it goes again."""
    answer = await client.create(engine, wait=30)
    uuid = answer.data["uuid"]

    async def active() -> bool:
        return bool((await client.get(uuid)).data["status"] == "active")

    if answer.data["status"] != "active":
        await until(active, timeout=client.patience)
    task = asyncio.create_task(client.delete(uuid))
    _DELETES.add(task)
    task.add_done_callback(_DELETES.discard)


_DELETES: set[asyncio.Task[object]] = set()
