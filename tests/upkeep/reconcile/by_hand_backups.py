"""Cases of backups, of their proofs, and of what is made from them: new databases, restores in place, evacuations."""

from typing import Any
from uuid import UUID, uuid4

from app.backups.restores.evacuation import evacuate
from app.contracts.backups import BackupDatabase, BackupDatabaseInput, ProveBackup, ProveBackupInput
from app.contracts.base import Engine
from app.contracts.queues import backup_queue
from app.hosts.changes import drain_host, undrain_host
from app.store.session import fetch
from tests.support.answers import data_of
from tests.support.service import REGION
from tests.support.waiting import until
from tests.upkeep.reconcile.interrupted import LONG_AGO, Begin, Begun, Case, ServiceUnderTest, hurried

_WAIT = {"wait": "true", "timeout": "60"}
_QUEUE = backup_queue(REGION)
_ROUNDS = 1_000
"""More than either workflow makes."""


async def _backup(place: ServiceUnderTest) -> Begun:
    database = await _new(place)
    place.later(place.caller.post(f"/databases/{database}/backups", {}))
    await until(lambda: fetch("SELECT 1 FROM backups WHERE database_uuid = $1", UUID(database)))
    return _about_backup(database)


async def _backup_given_up(place: ServiceUnderTest) -> Begun:
    """One whose attempts are used up."""
    async with place.gates.holding("BackupDatabase", "take_backup") as gate:
        begun = await _backup(place)
        await gate.reached.wait()
        gate.dropped = True
        await place.client.get_workflow_handle(gate.workflow_id).terminate("by hand")
    backup = UUID(gate.workflow_id.split("/")[1])
    [row] = await fetch("SELECT database_uuid FROM backups WHERE uuid = $1", backup)
    request = BackupDatabaseInput(backup=backup, round=_ROUNDS, **_about_it(place, row["database_uuid"]))
    await place.client.start_workflow(BackupDatabase.run, request, id=f"spent-{uuid4()}", task_queue=_QUEUE)
    return begun


async def _proof(place: ServiceUnderTest) -> Begun:
    _, backup = await _source(place)
    [before] = await _proofs(backup)
    place.later(place.caller.post(f"/backups/{backup}/restore_tests", None))

    async def is_begun() -> bool:
        [row] = await _proofs(backup)
        return bool(row["proof_number"] > before["proof_number"])

    await until(is_begun)
    return _about_proof(backup)


async def _proof_given_up(place: ServiceUnderTest) -> Begun:
    """One whose attempts are used up."""
    async with place.gates.holding("ProveBackup", "prove_backup") as gate:
        begun = await _proof(place)
        await gate.reached.wait()
        gate.dropped = True
        await place.client.get_workflow_handle(gate.workflow_id).terminate("by hand")
    database, backup = await _source(place)
    [row] = await _proofs(backup)
    request = ProveBackupInput(
        backup=UUID(backup), number=row["proof_number"], round=_ROUNDS, **_about_it(place, UUID(database))
    )
    await place.client.start_workflow(ProveBackup.run, request, id=f"spent-{uuid4()}", task_queue=_QUEUE)
    return begun


async def _filled(place: ServiceUnderTest) -> Begun:
    """A new database from a backup."""
    _, backup = await _source(place)
    return await _fill(place, backup)


async def _filled_in_vain(place: ServiceUnderTest) -> Begun:
    return await _fill(place, await _damaged(place))


async def _restore(place: ServiceUnderTest) -> Begun:
    database, backup = await _source(place)
    return await _restore_from(place, database, backup)


async def _restore_in_vain(place: ServiceUnderTest) -> Begun:
    database, _ = await _source(place)
    return await _restore_from(place, database, await _damaged(place))


async def _move(place: ServiceUnderTest) -> Begun:
    """From the other host, on which there is nothing else."""
    await undrain_host(place.other.host_id)
    await drain_host(place.host.host_id)
    try:
        database = await _new(place)
        await _backup_of(place, database)
    finally:
        await undrain_host(place.host.host_id)
    await evacuate(place.other.host_id)

    async def settled() -> bool:
        row = await place.row(database)
        at_home = row["status"] == "active" and row["host_id"] == place.host.host_id and row["restoring_at"] is None
        return at_home and await _restorations_are_over(database)

    return Begun(settled, lambda: _hurried(database))


async def _closing(place: ServiceUnderTest) -> Begun:
    """What a moved database has left on its former host, which is there again."""
    begun = await _move(place)
    [row] = await fetch(
        "SELECT d.engine_name FROM databases d JOIN restorations r ON r.database_id = d.id ORDER BY r.id DESC LIMIT 1"
    )
    name = row["engine_name"]
    adapter = await place.adapters.of_host(place.other.host_id)

    async def settled() -> bool:
        closed = not any(one.admits for one in await adapter.list_tenants() if one.name == name)
        rows = await fetch("SELECT 1 FROM findings WHERE subject = $1 AND rule = 'orphan_on_host'", name)
        return bool(await begun.settled()) and (closed or bool(rows))

    return Begun(settled, begun.hurry)


async def _new(place: ServiceUnderTest) -> str:
    return str((await place.caller.created())["uuid"])


async def _source(place: ServiceUnderTest) -> tuple[str, str]:
    """A database and its backup, the same ones for all who ask."""
    if place.source is None:
        database = await _new(place)
        place.source = database, await _backup_of(place, database)
    return place.source


async def _damaged(place: ServiceUnderTest) -> str:
    """A backup of which the store lost a byte, the same one for all who ask."""
    if place.damaged is None:
        database, _ = await _source(place)
        place.damaged = await _backup_of(place, database)
        (part,) = (place.backups / place.damaged).rglob("*.zst.age")
        held = bytearray(part.read_bytes())
        held[len(held) // 2] ^= 1
        part.write_bytes(held)
    return place.damaged


async def _backup_of(place: ServiceUnderTest, database: str) -> str:
    answer = await place.caller.post(f"/databases/{database}/backups", {}, params=_WAIT)
    return str(data_of(answer, 201)["uuid"])


async def _fill(place: ServiceUnderTest, backup: str) -> Begun:
    answer = await place.caller.create("filled", source={"backup_uuid": backup})
    database = answer.json()["data"]["uuid"]

    async def settled() -> bool:
        row = await place.row(database)
        is_whole = row["status"] == "active" or (row["status"] == "deleted" and row["destroyed_at"] is not None)
        return is_whole and await _restorations_are_over(database)

    return Begun(settled, lambda: _hurried(database))


async def _restore_from(place: ServiceUnderTest, database: str, backup: str) -> Begun:
    data_of(await place.caller.post(f"/databases/{database}/restorations", {"backup_uuid": backup}), 202)

    async def settled() -> bool:
        row = await place.row(database)
        return row["status"] == "active" and await _restorations_are_over(database)

    return Begun(settled, lambda: _hurried(database))


async def _restorations_are_over(database: str) -> bool:
    """With nothing left of what they needed meanwhile."""
    rows = await fetch(
        "SELECT r.ended_at, c.id, c.destroyed_at FROM restorations r JOIN databases d ON d.id = r.database_id"
        " LEFT JOIN databases c ON c.id = r.scratch_id WHERE d.uuid = $1",
        UUID(database),
    )
    return all(row["ended_at"] and (row["id"] is None or row["destroyed_at"]) for row in rows)


async def _hurried(database: str) -> None:
    await hurried(database)
    await fetch(
        f"UPDATE restorations r SET created_at = {LONG_AGO},"
        f" ended_at = CASE WHEN r.ended_at IS NULL THEN NULL ELSE {LONG_AGO} END"
        " FROM databases d WHERE d.id = r.database_id AND d.uuid = $1",
        UUID(database),
    )
    await _hurry_backups(database)


async def _hurry_backups(database: str) -> None:
    await fetch(
        f"UPDATE backups SET changed_at = {LONG_AGO}, beat_at = NULL"
        " WHERE database_uuid = $1 AND status IN ('pending', 'running')",
        UUID(database),
    )


def _about_backup(database: str) -> Begun:
    async def settled() -> bool:
        rows = await fetch("SELECT status FROM backups WHERE database_uuid = $1", UUID(database))
        return all(row["status"] not in ("pending", "running") for row in rows)

    return Begun(settled, lambda: _hurry_backups(database))


def _about_proof(backup: str) -> Begun:
    async def settled() -> bool:
        [row] = await _proofs(backup)
        return bool(row["proof_status"] != "running")

    async def hurry() -> None:
        await fetch(
            f"UPDATE backups SET proof_changed_at = {LONG_AGO}, proof_beat_at = NULL WHERE uuid = $1", UUID(backup)
        )

    return Begun(settled, hurry)


async def _proofs(backup: str) -> list[Any]:
    return await fetch("SELECT proof_status, proof_number FROM backups WHERE uuid = $1", UUID(backup))


def _about_it(place: ServiceUnderTest, database: UUID) -> dict[str, Any]:
    return {"database": database, "engine": Engine.POSTGRES, "region": REGION, "team_id": place.caller.team_id}


def _long(workflow: str, begin: Begin, *skipped: str, waits: str | None = None, in_the_run: bool = False) -> Case:
    """One of which each run takes a second or more."""
    return Case(workflow, begin, frozenset(skipped), waits, in_the_run)


BACKUPS = {
    "BackupDatabase": Case("BackupDatabase", _backup, waits="take_backup"),
    "BackupDatabase, given up": Case("BackupDatabase", _backup_given_up, frozenset({"take_backup"})),
    "ProveBackup": Case("ProveBackup", _proof, waits="prove_backup"),
    "ProveBackup, given up": Case("ProveBackup", _proof_given_up, frozenset({"prove_backup"})),
    "ProvisionDatabase, filled": _long(
        "ProvisionDatabase", _filled, "create_database", waits="fill_database", in_the_run=True
    ),
    "ProvisionDatabase, filled in vain": _long(
        "ProvisionDatabase", _filled_in_vain, "create_database", "fill_database"
    ),
    "RestoreDatabase": _long("RestoreDatabase", _restore, waits="exchange_data", in_the_run=True),
    "RestoreDatabase, in vain": _long("RestoreDatabase", _restore_in_vain, "prepare_restoration", "fill_database"),
    "RestoreDatabase, evacuated": _long("RestoreDatabase", _move, waits="fill_database"),
    "CloseRemnant": _long("CloseRemnant", _closing, waits="close_remnant"),
}
