"""The worker dies while data is being brought: it goes on, and what is active is whole."""

from typing import Any

import pytest

from app.contracts.base import Engine
from tests.restores.conftest import ENGINES
from tests.restores.support import backed_up, filled, full, session, visits
from tests.support.answers import body_of
from tests.support.client import Caller
from tests.support.service import RunningService
from tests.support.waited import ended

pytestmark = pytest.mark.parametrize("engine", ENGINES)


async def test_of_the_worker_while_a_database_is_filled_and_while_one_is_restored(
    service: RunningService, caller: Caller, engine: Engine
) -> None:
    made = await filled(caller, engine, rows=20)
    backup = await backed_up(caller, made)
    async with session(made) as tenant:
        await tenant.execute("DELETE FROM visits")
    source = {"backup_uuid": backup["uuid"]}
    creating = body_of(await caller.create("again", source=source), 202)
    restoring = body_of(await caller.post(f"/databases/{made['uuid']}/restorations", source), 202)
    for _ in range(2):
        await _kill(service)
    for operation in (creating, restoring):
        assert (await ended(caller, operation["operation"]["uuid"]))["status"] == "succeeded"
    for uuid in (creating["data"]["uuid"], made["uuid"]):
        database: dict[str, Any] = await full(caller, uuid)
        assert database["status"] == "active"
        assert await visits(database) == 20


async def _kill(service: RunningService) -> None:
    await service.kill("worker")
    await service.start("worker")
