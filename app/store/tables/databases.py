"""The databases of teams and of the warm pool."""

from piccolo.columns import UUID, Array, BigInt, BigSerial, Boolean, Bytea, DoublePrecision, ForeignKey, Integer, Text
from piccolo.columns.base import OnDelete
from piccolo.constraints import Unique
from piccolo.table import Table

from app.store.engine import DB
from app.store.tables import columns
from app.store.tables.accounts import Team, User
from app.store.tables.hosts import EngineHost


class Database(Table, tablename="databases", db=DB):
    """A database, from the request until long after its destruction. One without a team is in the warm pool, or was.

    `position` is the order in lists; a pool database gets a new one when it is claimed. `engine_name` is the name of
    database and role on the host. `remote_since` is set before the first statement on a host: while it is null, nothing
    was created there. `verified_at` is when a pool database was last verified by a login. A paused database without
    `paused_reason` is resuming. `frozen_at` is set while it may not write. `login_tried_at` is when the service last
    tried its credentials; `credentials_refused_at` is set from their refusal until they work again. `deletion_revision`
    counts the workflows that deletions requested; the newest one is responsible. `deleted_at` stays when a database is
    undeleted. After `destroy_at` a deleted database can't be undeleted. `login_name` is the account that
    `password_sealed` belongs to, null where that is `engine_name`; `credentials_created_at` is when the two came to be,
    null where that was with the database. `credentials_revision` counts the changes of its credentials and users. One
    with `deletion_protection` has no `expires_at`, at which a database deletes itself; `expiry_announced_at` is when
    the event of that was written. One with a `purpose` is nobody's and short-lived: it was born `deleted`, and is
    destroyed at `destroy_at` at the latest. Since `restoring_at` its data is not whole, and nobody is let in; null
    otherwise. `labels` are texts like `env:production`, sorted. Since `destruction_began_at` a destruction may have
    removed its data on the host.
    """

    id = BigSerial(primary_key=True)
    position = BigSerial()
    uuid = UUID(unique=True)
    team_id = ForeignKey(Team, null=True, on_delete=OnDelete.restrict)
    created_by_id = ForeignKey(User, null=True, on_delete=OnDelete.set_null)
    name = Text()
    engine = Text()
    region = Text()
    plan = Text()
    status = Text()
    host_id = ForeignKey(EngineHost, null=False, on_delete=OnDelete.restrict)
    engine_name = Text()
    password_sealed = Bytea(null=True, default=None)
    storage_hard_limit_gb = DoublePrecision(null=True, default=None)
    connection_hard_limit = Integer(null=True, default=None)
    warning_threshold_pct = Integer(null=True, default=None)
    connections = Integer()
    limits_revision = Integer(default=0)
    limits_applied = Integer(default=0)
    paused_reason = Text(null=True, default=None)
    frozen_at = columns.moment()
    access_revision = Integer(default=0)
    access_applied = Integer(default=0)
    access_changed_at = columns.moment()
    remote_since = columns.moment()
    provisioned_at = columns.moment()
    verified_at = columns.moment()
    login_tried_at = columns.moment()
    credentials_refused_at = columns.moment()
    deleted_at = columns.moment()
    deletion_revision = Integer(default=0)
    cancelled_provision_jobs = Integer(default=0)
    revoked_at = columns.moment()
    destroy_at = columns.moment()
    destroyed_at = columns.moment()
    created_at = columns.created_at()
    updated_at = columns.created_at()
    login_name = Text(null=True, default=None)
    credentials_created_at = columns.moment()
    credentials_revision = Integer(default=0)
    deletion_protection = Boolean(default=False)
    expires_at = columns.moment()
    expiry_announced_at = columns.moment()
    purpose = Text(null=True, default=None)
    restoring_at = columns.moment()
    labels = Array(base_column=Text(), default=list)
    destruction_began_at = columns.moment()


class DatabaseLabel(Table, tablename="database_labels", db=DB):
    """An index of the labels of the databases that lists show: their pages are read off it. A trigger on `databases`
    keeps it, nothing else writes it."""

    id = BigSerial(primary_key=True)
    database_id = ForeignKey(Database, null=False, on_delete=OnDelete.cascade)
    team_id = BigInt()
    position = BigInt()
    label = Text()
    once = Unique([database_id, label])
