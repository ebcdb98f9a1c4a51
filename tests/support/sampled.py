"""A database that is measured at moments that the test chooses, and what its metrics say then."""

from datetime import UTC, datetime, timedelta
from typing import Any

from app.hosts.adapters import Adapters
from app.provisioning import enforcement
from app.quotas.plans import DEFAULT_PLANS
from app.store.session import execute
from tests.support.answers import data_of
from tests.support.client import Caller

MINUTE = timedelta(minutes=1)


class SampledDatabase:
    def __init__(self, caller: Caller, uuid: str, region: str, adapters: Adapters) -> None:
        self.caller = caller
        self._uuid, self._region, self._adapters = uuid, region, adapters
        # Whole minutes, the last of which has just ended.
        self.start = datetime.now(UTC).replace(second=0, microsecond=0) - 20 * MINUTE

    async def forget(self) -> None:
        """What a worker has measured before: what isn't newer would not be taken."""
        await execute("DELETE FROM metric_readings")
        await execute("UPDATE metric_rollups SET rolled_until = $1", self.start - timedelta(hours=1))

    def at(self, minute: int) -> datetime:
        return self.start + minute * MINUTE

    async def sample(self, minute: int) -> None:
        """All of its region are measured, as the workflow does it at that moment."""
        await enforcement.measure_region(
            DEFAULT_PLANS, self._adapters, self._region, self.at(minute), longest_gap=120.0, overdue=60.0
        )

    async def metrics(self, **parameters: Any) -> dict[str, Any]:
        known = {"from": self.start.isoformat(), "to": self.at(15).isoformat(), "step": 60} | parameters
        found: dict[str, Any] = data_of(await self.caller.get(f"/databases/{self._uuid}/metrics", params=known))
        return found

    async def points(self, name: str) -> dict[int, float]:
        """By the minute."""
        (series,) = (await self.metrics(names=name))["series"]
        assert series["name"] == name
        return {(datetime.fromisoformat(at) - self.start) // MINUTE: value for at, value in series["points"]}

    async def gaps(self) -> list[tuple[int, int]]:
        """In minutes from the beginning; without the one since the newest sample, for no test takes place in time."""
        found = (await self.metrics())["gaps"]
        minutes = [tuple((datetime.fromisoformat(end) - self.start) // MINUTE for end in gap) for gap in found]
        return [(since, end) for since, end in minutes if end != 15]
