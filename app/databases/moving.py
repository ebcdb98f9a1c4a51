"""Where a database that is being made lies, and its move to another host or name."""

from collections.abc import Collection

from app.contracts.base import DatabaseStatus
from app.contracts.control import HostFailure
from app.contracts.databases import CloseRemnant, Placement, RemoveRemnant, RemoveRemnantInput
from app.contracts.queues import remnant_workflow_id
from app.core.ids import engine_name, new_uuid
from app.core.metrics.counters import PROVISIONING_MOVES
from app.databases import records
from app.databases.records import DatabaseRecord, expect
from app.hosts.loads import mark_sick, place
from app.outbox.workflow_starts import NORMAL, request_start
from app.store.session import execute, transaction


async def replace_host(failure: HostFailure, among: Collection[int] | None = None) -> Placement:
    """Moves a provisioning database off a host that failed, or to another name where its name is somebody else's.

    It stays where it is when no other host of its region has room, of those in `among` if that is given: then waiting
    is all there is. Raises `NotWanted` unless it is provisioning.
    """
    async with transaction():
        old = expect(await records.find_for_update(failure.database), DatabaseStatus.PROVISIONING)
        if old.placement != failure.placement:
            return old.placement
        if failure.name_taken:
            await _move(old, old.host_id, engine_name())
            PROVISIONING_MOVES.labels(old.engine.value, old.region, "name_taken").inc()
        else:
            other = await place(old.engine, old.region, old.connections, without=old.host_id, among=among)
            await mark_sick(old.host_id, failure.reason)
            if other is not None and not other.sick:
                await _move(old, other.id, old.engine_name)
                PROVISIONING_MOVES.labels(old.engine.value, old.region, "host_failed").inc()
        return expect(await records.find(failure.database), DatabaseStatus.PROVISIONING).placement


async def move_lost(record: DatabaseRecord, host_id: int) -> None:
    """Moves a live database whose host is lost to another host, where nothing of it is yet. Its row must be locked.
    Nobody is let in until it is whole there. What lies on the old host is closed when that host is there again, and
    stays."""
    await execute(
        """
        UPDATE databases SET host_id = $2, remote_since = NULL, restoring_at = now(), status = 'paused',
               access_revision = access_revision + 1, access_changed_at = now(), updated_at = now()
        WHERE id = $1
        """,
        record.id,
        host_id,
    )
    await _begin_on_remnant(CloseRemnant, record)


async def _move(record: DatabaseRecord, host_id: int, name: str) -> None:
    """Moves the row, and requests in the same transaction that what may lie at the old place is removed: nobody would
    know of it afterwards."""
    await execute(
        "UPDATE databases SET host_id = $2, engine_name = $3, remote_since = NULL, updated_at = now() WHERE id = $1",
        record.id,
        host_id,
        name,
    )
    if record.remote_since is not None:
        await _begin_on_remnant(RemoveRemnant, record)


async def _begin_on_remnant(workflow: type[RemoveRemnant] | type[CloseRemnant], record: DatabaseRecord) -> None:
    await request_start(
        workflow,
        remnant_workflow_id(record.uuid, record.host_id, new_uuid()),
        RemoveRemnantInput(
            database=record.uuid,
            engine=record.engine,
            region=record.region,
            team_id=record.team_id,
            host_id=record.host_id,
            name=record.engine_name,
        ),
        priority=NORMAL,
    )
