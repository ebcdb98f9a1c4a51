"""What open streams ask of our own database while nothing happens: one question for all, now and then."""

import asyncio
from collections import Counter
from collections.abc import Collection
from typing import Any
from uuid import UUID

import pytest

from app.auth.scopes import Scope
from app.auth.standing import Standing, still_good
from app.operations import records
from app.operations.records import OperationRecord
from tests.operations.support import latest, provisioning
from tests.operations.test_reading import listening
from tests.support.in_process import lone_api
from tests.support.moves import activate
from tests.support.waiting import until

STREAMS = 5


async def test_streams_read_at_a_change_and_are_checked_together(
    control_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: Counter[str] = Counter()
    find = records.find

    async def counting_find(operation: UUID, **options: Any) -> OperationRecord | None:
        asked["looks"] += 1
        return await find(operation, **options)

    async def counting_check(callers: Collection[Standing], scope: Scope) -> set[Standing]:
        asked["checks of all" if len(callers) == STREAMS else "checks of one"] += 1
        return await still_good(callers, scope)

    monkeypatch.setattr("app.operations.records.find", counting_find)
    monkeypatch.setattr("app.web.event_streams.still_good", counting_check)
    async with lone_api(control_dsn, event_stream_comment_seconds=0.1) as lone:
        await lone.add_host()
        # Once a listener comes back, all streams look.
        await until(listening)
        caller, database = await provisioning(lone)
        path = f"/operations/{(await latest(database)).uuid}/events"
        # Each answer is there when its stream has ended: this client collects them.
        streams = [asyncio.create_task(caller.get(path)) for _ in range(STREAMS)]
        await until(lambda: asked["looks"] >= STREAMS)
        await until(lambda: asked["checks of all"] >= 5)
        seen = asked.copy()
        await until(lambda: asked["checks of all"] >= seen["checks of all"] + 10)
        assert (asked["looks"], asked["checks of one"]) == (seen["looks"], seen["checks of one"])
        await activate(database)
        answers = await asyncio.gather(*streams)
    for answer in answers:
        assert answer.text.count("event: operation\n") == 2
        assert answer.text.count(": nothing new\n") >= 2
