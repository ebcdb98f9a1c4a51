"""What a create answers."""

from msgspec import UNSET, Struct, UnsetType, field

from app.applications.records import find_at_creation
from app.applications.schemas import ApplicationView
from app.applications.views import view as application_view
from app.applications.waiting import await_end
from app.contracts.applications import ApplicationStatus
from app.contracts.base import DatabaseStatus
from app.core.context import current_request_id
from app.core.secrets import SecretBox
from app.databases.records import DatabaseRecord
from app.databases.schemas import DatabaseView, Provisioning
from app.databases.views import full_view
from app.store.notify import RowWatch


class CreatedDatabase(Struct, kw_only=True):
    message: str
    data: DatabaseView
    provisioning: Provisioning | UnsetType = UNSET
    blueprint_application: ApplicationView | UnsetType = UNSET
    """That of the `blueprint_uuid` which was asked for."""
    request_id: str = field(default_factory=current_request_id)
    idempotency_replay: bool | UnsetType = UNSET
    """True when an earlier request with this key did it, and this is the answer that it got."""


def created(record: DatabaseRecord, box: SecretBox, *, waited: int) -> CreatedDatabase:
    view = full_view(record, box)
    if record.status is DatabaseStatus.ACTIVE:
        limited = record.limits_applied >= record.limits_revision
        message = "Database created." if limited else "Database created; its limits follow in a moment."
        return CreatedDatabase(message=message, data=view)
    progress = Provisioning(completed=False, waited_seconds=waited, poll_url=f"/api/v1/databases/{record.uuid}")
    return CreatedDatabase(message="Database is being provisioned.", data=view, provisioning=progress)


async def add_application(answer: CreatedDatabase, watch: RowWatch, timeout: float) -> None:
    """Waits for the end of the blueprint's application, if the database is there, and tells of it. A database whose
    blueprint failed is active all the same."""
    record = await find_at_creation(answer.data.uuid)
    assert record is not None, "it was written with the database"
    if answer.data.status is DatabaseStatus.ACTIVE:
        record = await await_end(watch, record, timeout)
    answer.blueprint_application = await application_view(record)
    if record.status is ApplicationStatus.FAILED:
        answer.message = "Database created; its blueprint could not be applied."
