"""Cases of `ApplyCredentials`: each state of a rotation, and of a user, from which it works."""

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from app.store.session import fetch
from tests.support.answers import data_of
from tests.support.waiting import until
from tests.upkeep.reconcile.interrupted import LONG_AGO, Begun, Case, ServiceUnderTest, hurried

_WORKFLOW, _STEP = "ApplyCredentials", "apply_credentials"


async def _rotation(place: ServiceUnderTest) -> Begun:
    """Without an overlap: one run brings the new password into force and ends the former one."""
    return await _rotating(place, await _new(place), 0)


async def _retirement(place: ServiceUnderTest) -> Begun:
    """The end of an overlap."""
    database = await _new(place)
    with place.gates.standing_open():
        answer = await place.caller.post(f"/databases/{database}/credential_rotations", {"overlap_seconds": 3600})
    rotation = data_of(answer)["uuid"]
    place.later(place.caller.post(f"/credential_rotations/{rotation}/completions", None))
    await _in_state(database, "retiring")
    return _about_rotations(database)


async def _cancellation(place: ServiceUnderTest) -> Begun:
    """Of a rotation that nothing was done for: the run which was to do it is gone."""
    database = await _new(place)
    async with place.gates.holding(_WORKFLOW, _STEP) as gate:
        begun = await _rotating(place, database, 0)
        await gate.reached.wait()
        gate.dropped = True
        await place.client.get_workflow_handle(gate.workflow_id).terminate("by hand")
        operations = data_of(
            await place.caller.get("/operations", params={"database_uuid": database, "type": "rotate"})
        )
        place.later(place.caller.post(f"/operations/{operations[0]['uuid']}/cancellations", None))
        # Nothing holds it up: it may be over already.
        await _in_state(database, "cancelling", "cancelled")
    return begun


async def _user(place: ServiceUnderTest) -> Begun:
    database = await _new(place)
    place.later(_ask_for_user(place, database))
    await until(lambda: _users(database))
    return _about_users(database, "active")


async def _removed_user(place: ServiceUnderTest) -> Begun:
    database = await _new(place)
    with place.gates.standing_open():
        data_of(await _ask_for_user(place, database), 201)
    place.later(place.caller.delete(f"/databases/{database}/users/reports"))
    await until(lambda: _users(database, "removing"))
    return _about_users(database)


async def _new(place: ServiceUnderTest) -> str:
    return str((await place.caller.created())["uuid"])


async def _rotating(place: ServiceUnderTest, database: str, overlap: int) -> Begun:
    path = f"/databases/{database}/credential_rotations"
    place.later(place.caller.post(path, {"overlap_seconds": overlap}))
    await until(lambda: _rotations(database))
    return _about_rotations(database)


async def _ask_for_user(place: ServiceUnderTest, database: str) -> Any:
    return await place.caller.post(f"/databases/{database}/users", {"name": "reports", "access": "read_only"})


async def _rotations(database: str) -> list[Any]:
    return await fetch(
        "SELECT r.status FROM credential_rotations r JOIN databases d ON d.id = r.database_id WHERE d.uuid = $1",
        UUID(database),
    )


async def _in_state(database: str, *statuses: str) -> None:
    async def look() -> bool:
        (row,) = await _rotations(database)
        return row["status"] in statuses

    await until(look)


async def _users(database: str, status: str | None = None) -> list[Any]:
    return await fetch(
        "SELECT u.status FROM database_users u JOIN databases d ON d.id = u.database_id"
        " WHERE d.uuid = $1 AND ($2::text IS NULL OR u.status = $2)",
        UUID(database),
        status,
    )


def _about_rotations(database: str) -> Begun:
    async def settled() -> bool:
        return all(row["status"] in ("completed", "cancelled") for row in await _rotations(database))

    return Begun(settled, _hurry(database))


def _about_users(database: str, *statuses: str) -> Begun:
    async def settled() -> bool:
        return tuple(row["status"] for row in await _users(database)) == statuses

    return Begun(settled, _hurry(database))


def _hurry(database: str) -> Callable[[], Awaitable[None]]:
    async def hurry() -> None:
        await hurried(database)
        for table in ("credential_rotations", "database_users"):
            await fetch(
                f"UPDATE {table} t SET created_at = {LONG_AGO}, changed_at = {LONG_AGO}"
                " FROM databases d WHERE d.id = t.database_id AND d.uuid = $1",
                UUID(database),
            )

    return hurry


CREDENTIALS = {
    f"{_WORKFLOW}, a rotation": Case(_WORKFLOW, _rotation, waits=_STEP),
    f"{_WORKFLOW}, the end of an overlap": Case(_WORKFLOW, _retirement),
    f"{_WORKFLOW}, a cancelled rotation": Case(_WORKFLOW, _cancellation),
    f"{_WORKFLOW}, a user": Case(_WORKFLOW, _user),
    f"{_WORKFLOW}, a removed user": Case(_WORKFLOW, _removed_user),
}
