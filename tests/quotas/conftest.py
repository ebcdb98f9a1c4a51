"""The command beside the running service, and a way to have its quotas enforced now."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import pytest

from app.contracts.queues import CONTROL_QUEUE, delete_workflow_id
from app.core.temporal import connect
from app.databases import access, records
from app.databases.deletion import wake_deletion
from app.databases.records import DatabaseRecord
from app.store.session import fetch, transaction
from tests.cli.command import Headwater
from tests.support.service import REGION, RunningService
from tests.support.store import store
from tests.support.waiting import until
from tests.workflows.stage import Handle, run_wholly, says


@dataclass(frozen=True)
class Operator:
    """What an operator can do and see."""

    service: RunningService
    headwater: Headwater

    async def inspect(self, made: dict[str, Any]) -> dict[str, Any]:
        details: dict[str, Any] = await self.headwater.json("databases", "inspect", made["uuid"])
        return details

    async def pause(self, made: dict[str, Any]) -> dict[str, Any]:
        details: dict[str, Any] = await self.headwater.json("databases", "pause", made["uuid"])
        return details

    async def resume(self, made: dict[str, Any]) -> dict[str, Any]:
        details: dict[str, Any] = await self.headwater.json("databases", "resume", made["uuid"])
        return details

    async def freeze(self, made: dict[str, Any]) -> None:
        """Ends its writing, as a measurement over its limit does, and waits for the engine. The limit is as low as it
        takes: the service goes on measuring, and would thaw what has room."""
        async with store(self.service.control_dsn), transaction():
            record = await records.find_for_update(UUID(made["uuid"]))
            assert record is not None
            await fetch("UPDATE databases SET storage_hard_limit_gb = 0 WHERE id = $1", record.id)
            await access.freeze(record)
        await self.settled(made, lambda record: record.frozen_at is not None)

    async def wake(self, made: dict[str, Any]) -> None:
        """Has the workflow of its deletion look at the row, as whoever changes the row does."""
        async with store(self.service.control_dsn), transaction():
            record = await records.find_for_update(UUID(made["uuid"]))
            assert record is not None
            await wake_deletion(record)

    async def deletion_says(self, made: dict[str, Any], words: str) -> None:
        """Waits until the workflow of its deletion says that."""
        client = await connect(self.service.temporal.address, "default")
        revision = (await self.inspect(made))["deletion_revision"]
        await says(client.get_workflow_handle(delete_workflow_id(UUID(made["uuid"]), revision)), words)

    async def enforce(self) -> None:
        """What the Schedules start, from its beginning to its end."""
        client = await connect(self.service.temporal.address, "default")
        for workflow in ("EnforceQuotas", "ReclaimSpace"):

            async def start(workflow: str = workflow) -> Handle:
                return await client.start_workflow(workflow, id=f"{workflow}/{uuid4()}", task_queue=CONTROL_QUEUE)

            await run_wholly(start, REGION)

    async def until_enforced(self, made: dict[str, Any], holds: Callable[[DatabaseRecord], Any]) -> DatabaseRecord:
        """Enforces quotas again and again, until the database's row is so and its engine has followed."""

        async def look() -> DatabaseRecord | None:
            await self.enforce()
            return await self.settled(made, holds)

        found = await until(look)
        assert found is not None
        return found

    async def settled(self, made: dict[str, Any], holds: Callable[[DatabaseRecord], Any]) -> DatabaseRecord | None:
        async def applied() -> DatabaseRecord | None:
            record = await records.find(UUID(made["uuid"]))
            assert record is not None
            return record if record.access_applied >= record.access_revision else None

        async with store(self.service.control_dsn):
            record = await until(applied)
        return record if record is not None and holds(record) else None

    async def sql(self, statement: str, *values: Any) -> list[Any]:
        """On our own database."""
        async with store(self.service.control_dsn):
            return await fetch(statement, *values)

    async def events(self, made: dict[str, Any]) -> list[str]:
        rows = await self.sql(
            "SELECT e.type FROM events e JOIN databases d ON d.id = e.database_id WHERE d.uuid = $1 ORDER BY e.id",
            UUID(made["uuid"]),
        )
        return [row["type"] for row in rows]


@pytest.fixture
def operator(service: RunningService) -> Operator:
    return Operator(
        service,
        Headwater(
            {
                "CONTROL_DSN": service.control_dsn,
                "TEMPORAL_ADDRESS": service.temporal.address,
                "SECRET_KEYS": service.secret_keys,
                "HOME": str(service.folder),
            }
        ),
    )
