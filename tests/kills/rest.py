"""What holds once all is at rest."""

import json
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from tests.e2e.hosts import login
from tests.e2e.patient_client import PatientClient
from tests.kills.customer import Journal, lets_in
from tests.support.receiver import Receiver
from tests.support.waiting import until

PATIENCE_SECONDS = 240.0
_DELETED = "database.deleted"
EVENTS = ("database.provisioned", _DELETED)
"""What the customers' endpoint gets."""
_UNFINISHED = """
SELECT type || ' ' || uuid || ' is ' || status FROM operations WHERE finished_at IS NULL
UNION ALL SELECT workflow_id || ' is not started' FROM workflow_starts
UNION ALL SELECT 'delivery ' || id || ' is ' || status FROM webhook_deliveries WHERE status <> 'delivered'
UNION ALL SELECT 'backup ' || uuid || ' is ' || status FROM backups WHERE status IN ('pending', 'running')
UNION ALL SELECT 'key ' || key || ' has no answer' FROM idempotency_keys WHERE response_sealed IS NULL
UNION ALL SELECT uuid || ' is not destroyed' FROM databases WHERE status = 'deleted' AND destroyed_at IS NULL
"""

Rows = Callable[[str], Awaitable[list[Any]]]
"""Of our own database."""


async def finished(rows: Rows) -> None:
    """Waits until nothing is under way any more."""
    left: list[str] = []

    async def look() -> bool:
        try:
            left[:] = [row[0] for row in await rows(_UNFINISHED)]
        except Exception as fault:  # what was killed is not back yet
            left[:] = [repr(fault)]
        return not left

    try:
        await until(look, timeout=PATIENCE_SECONDS)
    except AssertionError:
        raise AssertionError("\n".join(left[:40])) from None


async def check_databases(client: PatientClient, journal: Journal) -> None:
    """They, teams and keys are as the customers were told, and let their tenants in."""
    for one in journal.kept.values():
        shown = (await client.get(one.uuid)).data
        quota = shown["quotas"]["connection_hard_limit"] if one.connections else None
        assert (shown["status"], shown["labels"], quota) == ("active", one.labels, one.connections)
        assert await login(shown["connection_string"]) >= 1
        assert await one.tables_there(shown["connection_string"])
    teams = {str(found["id"]): found["name"] for found in (await client.send("GET", "/teams?limit=100")).data}
    assert journal.teams.items() <= teams.items()
    assert all([await lets_in(client, key) for key in journal.keys])


async def check_rows_and_events(rows: Rows, journal: Journal, receiving: Receiver, team: int) -> None:
    """When all of the team's databases are deleted: nothing twice, and each event has arrived, of one delivery."""
    found = await rows(f"SELECT uuid::text FROM databases WHERE team_id = {team}")
    assert Counter(row["uuid"] for row in found) == Counter(journal.made)
    told = {
        one.headers["webhook-id"]: (body["event"], body["data"]["uuid"])
        for one in receiving.of("/events")
        for body in [json.loads(one.body)]
    }
    due = Counter((event, uuid) for event in EVENTS for uuid in journal.made)
    due.update((_DELETED, uuid) for uuid in journal.undeleted)
    assert Counter(told.values()) == due
