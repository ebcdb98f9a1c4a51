"""Many events for five receivers of different behaviour, while the webhook worker is killed repeatedly."""

import asyncio
import json
import time
from dataclasses import dataclass, field

from app.store.session import fetch
from tests.support.client import Caller
from tests.support.receiver import Receiver, answer, hang, reset
from tests.support.signatures import verify
from tests.support.waiting import until
from tests.support.webhooks import WEBHOOKS, Delivering, emit, path, subscribed

BEHAVIOURS = {
    "fine": answer(200),
    "500": answer(500),
    "hanging": hang,
    "resetting": reset,
    "429": answer(429, Retry_After="5"),
}


@dataclass
class Storm:
    """`paths` by behaviour; `committed` has the time of each event's commit, by number."""

    caller: Caller
    target: Receiver
    paths: dict[str, str] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)
    endpoints: dict[str, int] = field(default_factory=dict)
    committed: dict[int, float] = field(default_factory=dict)

    async def prepare(self) -> None:
        for behaviour, reply in BEHAVIOURS.items():
            where = self.paths[behaviour] = path()
            self.target.replies[where] = reply
            self.endpoints[behaviour], self.secrets[behaviour] = await subscribed(self.caller, self.target.url(where))

    async def rain(self, events: int, rate: float) -> None:
        """Commits this many events, at most so many a second."""
        started = time.monotonic()
        for number in range(events):
            await asyncio.sleep(max(0.0, started + number / rate - time.monotonic()))
            await emit(self.caller, number)
            self.committed[number] = time.time()

    async def all_fine(self, timeout: float) -> None:
        """Waits until the good receiver has every event."""

        async def complete() -> bool:
            return len(self.arrivals()) == len(self.committed)

        await until(complete, timeout=timeout)

    def arrivals(self) -> dict[int, float]:
        """For each event that the good receiver has, the seconds from its commit to its first arrival."""
        first: dict[int, float] = {}
        for got in self.target.of(self.paths["fine"]):
            number = json.loads(got.body)["data"]["number"]
            first.setdefault(number, got.at - self.committed.get(number, got.at))
        return first

    def check(self) -> int:
        """Checks that every request is signed, and that repeated ones have the same id. Returns how many the good
        receiver got more than once."""
        for behaviour, where in self.paths.items():
            ids: dict[int, set[str]] = {}
            for got in self.target.of(where):
                verify(got, self.secrets[behaviour])
                ids.setdefault(json.loads(got.body)["data"]["number"], set()).add(got.headers["webhook-id"])
            assert all(len(one) == 1 for one in ids.values()), behaviour
            assert len(set().union(*ids.values())) == len(ids), behaviour
        return len(self.target.of(self.paths["fine"])) - len(self.committed)

    async def statuses(self, behaviour: str) -> dict[str, int]:
        rows = await fetch(
            "SELECT status, count(*) FROM webhook_deliveries WHERE endpoint_id = $1 GROUP BY status",
            self.endpoints[behaviour],
        )
        return {row["status"]: row["count"] for row in rows}


async def kill_again_and_again(running: Delivering, kills: int, pause: float) -> None:
    for _ in range(kills):
        await asyncio.sleep(pause)
        await running.kill(WEBHOOKS)
        await running.start(WEBHOOKS)
