"""Backups of databases, and when they are taken."""

from piccolo.columns import (
    JSONB,
    UUID,
    BigInt,
    BigSerial,
    Boolean,
    Bytea,
    DoublePrecision,
    ForeignKey,
    Integer,
    Text,
)
from piccolo.columns.base import OnDelete
from piccolo.constraints import Unique
from piccolo.table import Table

from app.store.engine import DB
from app.store.tables import columns
from app.store.tables.accounts import Team
from app.store.tables.databases import Database


class Backup(Table, tablename="backups", db=DB):
    """A backup, from the request until long after its end. It outlives its database, of which it keeps what a restore
    needs to know; `database_id` is null for one that was found in the store after our own database was lost.

    `wrapped_key` opens its objects in the store. Until `admitted_at` it waits for its turn; afterwards its workflow is
    requested. `attempts` counts the attempts, and `beat_at` is the last sign of life of the one under way, null while
    none is. `position` is the dump's moment in the server's log. `format` says how to load it. `error` is for its team
    alone, as `proof_differences` and `proof_error` are: both may name the tenant's objects. `removed_at` is when the
    store had nothing of it any more, `locked_until` until when Object Lock refuses to remove it. `changed_at` is when
    its status changed last, `proof_changed_at` the proof's.

    `proof_number` counts its restore tests. `proof_beat_at` is the last sign of life of the one under way.
    `proof_scheduled` says whether nobody asked for it. `scratch_id` is the database that it restores into.
    """

    id = BigSerial(primary_key=True)
    uuid = UUID(unique=True)
    team_id = ForeignKey(Team, null=False, on_delete=OnDelete.restrict)
    database_id = ForeignKey(Database, null=True, on_delete=OnDelete.restrict)
    database_uuid = UUID()
    database_name = Text()
    engine = Text()
    region = Text()
    plan = Text()
    quotas = JSONB()
    kind = Text()
    status = Text(default="pending")
    description = Text(null=True, default=None)
    keep_days = Integer(null=True, default=None)
    wrapped_key = Bytea(null=True, default=None)
    priority = Integer()
    admitted_at = columns.moment()
    attempts = Integer(default=0)
    beat_at = columns.moment()
    format = JSONB(null=True, default=None)
    consistent_at = columns.moment()
    position = Text(null=True, default=None)
    size_bytes = BigInt(null=True, default=None)
    stored_bytes = BigInt(null=True, default=None)
    tables = Integer(null=True, default=None)
    rows = BigInt(null=True, default=None)
    expires_at = columns.moment()
    error = Text(null=True, default=None)
    proof_status = Text(default="pending")
    proof_number = Integer(default=0)
    proof_scheduled = Boolean(default=False)
    proof_changed_at = columns.moment()
    proof_beat_at = columns.moment()
    proven_at = columns.moment()
    restore_seconds = DoublePrecision(null=True, default=None)
    proof_tables = Integer(null=True, default=None)
    proof_rows = BigInt(null=True, default=None)
    proof_differences = JSONB(null=True, default=None)
    proof_error = Text(null=True, default=None)
    scratch_id = BigInt(null=True, default=None)
    created_at = columns.created_at()
    started_at = columns.moment()
    completed_at = columns.moment()
    changed_at = columns.created_at()
    removed_at = columns.moment()
    locked_until = columns.moment()


class BackupPolicy(Table, tablename="backup_policies", db=DB):
    """When backups of a database are taken and tested, and how long they are kept. Null means the plan's.

    `backup_at` is when the next one is due, `test_at` when the next restore test is; null where none is to be.
    """

    id = BigSerial(primary_key=True)
    database_id = ForeignKey(Database, null=False, on_delete=OnDelete.cascade)
    enabled = Boolean(null=True, default=None)
    every_hours = Integer(null=True, default=None)
    keep_days = Integer(null=True, default=None)
    keep_last = Integer(null=True, default=None)
    test_every_days = Integer(null=True, default=None)
    backup_at = columns.moment()
    test_at = columns.moment()
    changed_at = columns.created_at()
    created_at = columns.created_at()
    one_of_a_database = Unique([database_id])
