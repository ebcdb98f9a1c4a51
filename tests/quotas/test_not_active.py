"""Work inside a database is refused with 422 `database_not_active` unless the database is active."""

from uuid import UUID

import pytest

from app.core.errors import DatabaseNotActive
from app.databases import records
from app.store.session import fetch
from tests.support.in_process import LoneApi
from tests.support.moves import make_active


@pytest.mark.parametrize("status", ["provisioning", "paused", "deleted"])
async def test_only_an_active_database_is_worked_in(lone: LoneApi, status: str) -> None:
    caller = await lone.caller()
    uuid = (await caller.post("/databases", {"name": "db"})).json()["data"]["uuid"]
    await make_active(uuid)
    record = await records.find(UUID(uuid))
    assert record is not None
    assert records.require_active(record) is record
    await fetch("UPDATE databases SET status = $2 WHERE uuid = $1", UUID(uuid), status)
    record = await records.find(UUID(uuid))
    assert record is not None
    with pytest.raises(DatabaseNotActive) as refused:
        records.require_active(record)
    assert (refused.value.status, refused.value.code) == (422, "database_not_active")
    assert refused.value.details == {"status": status}
