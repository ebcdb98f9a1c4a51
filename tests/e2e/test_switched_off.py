"""What becomes due while the whole stack is off is done when it is on again, on every engine."""

import signal
from datetime import UTC, datetime
from functools import partial

from tests.credentials.support import is_refused, run
from tests.e2e.chaos import ENGINES, Ledger, check, delete
from tests.e2e.patient_client import PatientClient, client_of
from tests.support.stack import LiveStack
from tests.support.waiting import until


async def test_what_becomes_due_meanwhile(stack: LiveStack) -> None:
    ledger = Ledger()
    async with client_of(stack) as client:
        expiring = [(await client.create(engine)).data for engine in ENGINES]
        kept = [(await client.create(engine)).data for engine in ENGINES]
        for made in (*expiring, *kept):
            await run(made["connection_string"], "CREATE TABLE kept (n int)")
        rotated, guests = [], []
        for made in kept:
            path = f"/databases/{made['uuid']}"
            rotated.append((await client.send("POST", f"{path}/credential_rotations", body={})).data)
            guests.append((await client.send("POST", f"{path}/users", body={"name": "a", "access": "read_only"})).data)
    # From here on nobody looks until it starts again.
    stack.send_signal("worker", signal.SIGSTOP)
    moment = await _let_all_be_due(stack, [made["uuid"] for made in expiring], [made["uuid"] for made in kept])
    await stack.kill()
    await until(lambda: datetime.now(UTC) > moment)
    await stack.start()

    async with client_of(stack) as client:
        for made in expiring:
            await until(partial(stack.control, _DELETED, made["uuid"]))
        for rotation in rotated:
            await until(partial(_is_completed, client, rotation["uuid"]))
        for made in kept:
            await until(partial(_has_no_users, client, made["uuid"]))
        assert all([await is_refused(login["connection_string"]) for login in (*expiring, *kept, *guests)])
        for login in rotated:
            await run(login["connection_string"], "INSERT INTO kept VALUES (1)")
        for made in kept:
            ledger.note(made["uuid"], made["uuid"])
            await delete(client, ledger, made["uuid"])
    await check(stack, ledger)


_DELETED = """
SELECT 1 FROM databases d JOIN operations o ON o.database_id = d.id
WHERE d.uuid = $1::text::uuid AND d.status = 'deleted' AND d.revoked_at IS NOT NULL AND d.deleted_at > d.expires_at
AND o.type = 'delete' AND o.user_id IS NULL
"""


async def _is_completed(client: PatientClient, rotation: str) -> bool:
    return bool((await client.send("GET", f"/credential_rotations/{rotation}")).data["status"] == "completed")


async def _has_no_users(client: PatientClient, database: str) -> bool:
    return not (await client.send("GET", f"/databases/{database}/users")).data


async def _let_all_be_due(stack: LiveStack, expiring: list[str], kept: list[str]) -> datetime:
    """In a moment: when these databases delete themselves, and overlaps and users of the others end."""
    due = datetime.fromtimestamp(datetime.now(UTC).timestamp() + 1, UTC)
    await stack.control("UPDATE databases SET expires_at = $2 WHERE uuid = any($1::uuid[])", expiring, due)
    ids = "database_id IN (SELECT id FROM databases WHERE uuid = any($1::uuid[]))"
    await stack.control(f"UPDATE credential_rotations SET retires_at = $2 WHERE {ids}", kept, due)
    await stack.control(f"UPDATE database_users SET expires_at = $2 WHERE {ids}", kept, due)
    return due
