"""Changes that take time."""

from piccolo.columns import JSONB, UUID, BigInt, BigSerial, DoublePrecision, ForeignKey, Integer, Text
from piccolo.columns.base import OnDelete
from piccolo.table import Table

from app.store.engine import DB
from app.store.tables import columns
from app.store.tables.accounts import Team
from app.store.tables.databases import Database


class DatabaseOperation(Table, tablename="operations", db=DB):
    """One change of a database, from the request to its end.

    `steps`, `progress` and `reason` are as clients see them. `workflow_id` names the workflow that works on it; null
    where none did, as for a database from the warm pool. `revision` is that of the limits, the access or the deletion
    which the change made. `undo` is what a cancellation puts back; null where nothing can. `user_id` and `key_id` are
    those of the request, and stay when the key is gone; null for operators and for the service itself. `overdue_at` is
    when it was reported that `deadline_at` had passed. `version` counts the changes of the row.
    """

    id = BigSerial(primary_key=True)
    uuid = UUID(unique=True)
    team_id = ForeignKey(Team, null=False, on_delete=OnDelete.restrict)
    database_id = ForeignKey(Database, null=False, on_delete=OnDelete.restrict)
    engine = Text()
    type = Text()
    status = Text(default="pending")
    steps = JSONB()
    progress = JSONB(null=True, default=None)
    reason = JSONB(null=True, default=None)
    workflow_id = Text(null=True, default=None)
    revision = Integer(default=0)
    undo = JSONB(null=True, default=None)
    user_id = BigInt(null=True, default=None)
    key_id = BigInt(null=True, default=None)
    request_id = Text(null=True, default=None)
    expected_seconds = DoublePrecision(null=True, default=None)
    deadline_at = columns.moment()
    overdue_at = columns.moment()
    version = Integer(default=1)
    created_at = columns.created_at()
    changed_at = columns.created_at()
    started_at = columns.moment()
    cancel_requested_at = columns.moment()
    finished_at = columns.moment()
