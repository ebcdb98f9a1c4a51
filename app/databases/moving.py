"""A database's move to another host or name, and what is done with what it leaves at the old place."""

from app.contracts.databases import CloseRemnant, RemoveRemnant, RemoveRemnantInput
from app.contracts.queues import remnant_workflow_id
from app.core.ids import new_uuid
from app.databases.records import DatabaseRecord
from app.outbox.workflow_starts import NORMAL, request_start
from app.store.session import execute


async def move_provisioning(record: DatabaseRecord, host_id: int, name: str) -> None:
    """Moves a database that is being made to another host or name, in the transaction that has its row locked. Requests
    in it that what may lie at the old place is removed: nobody would know of it afterwards."""
    await execute(
        "UPDATE databases SET host_id = $2, engine_name = $3, remote_since = NULL, updated_at = now() WHERE id = $1",
        record.id,
        host_id,
        name,
    )
    if record.remote_since is not None:
        await _begin_on_remnant(RemoveRemnant, record)


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
