"""What gets its data from elsewhere takes as long as there is data, and is not stuck meanwhile."""

from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from app.backups.restores import records as restorations
from app.backups.restores.records import NewRestoration
from app.contracts.restores import RestorationKind, RestorationOutcome
from app.store.session import fetch
from app.upkeep.reconcile.records import check_records
from tests.operations.support import provisioning, row
from tests.support.in_process import LoneApi

_CHANGED = {
    "provisioning_stuck": "created_at = now() - interval '10 minutes'",
    "access_stuck": "status = 'paused', access_revision = access_revision + 1,"
    " access_changed_at = now() - interval '10 minutes'",
}


@pytest.mark.parametrize("rule", _CHANGED)
async def test_it_is_no_finding_until_the_restoration_has_ended(lone: LoneApi, rule: str) -> None:
    _, database = await provisioning(lone)
    record = await row(database)
    restoration = NewRestoration(uuid=uuid4(), database_id=record.id, kind=RestorationKind.CLONE, source_id=record.id)
    await restorations.insert(restoration)
    await fetch(f"UPDATE databases SET restoring_at = now(), {_CHANGED[rule]} WHERE uuid = $1", database)
    assert await _found(database) == []
    await restorations.end(restoration.uuid, RestorationOutcome.FAILED)
    assert await _found(database) == [rule]


async def _found(database: UUID) -> list[str]:
    return [one.rule for one in await check_records(timedelta(minutes=1)) if one.subject == str(database)]
