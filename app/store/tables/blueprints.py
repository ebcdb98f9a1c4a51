"""Saved SQL schemas, and their applications to databases."""

from piccolo.columns import JSONB, UUID, BigInt, BigSerial, Boolean, Bytea, ForeignKey, Integer, Text
from piccolo.columns.base import OnDelete
from piccolo.constraints import Unique
from piccolo.table import Table

from app.store.engine import DB
from app.store.tables import columns
from app.store.tables.accounts import Team, User
from app.store.tables.databases import Database


class Blueprint(Table, tablename="blueprints", db=DB):
    """A blueprint of a team, or of everyone when `is_system`. `version` is the current version in
    `blueprint_versions`."""

    id = BigSerial(primary_key=True)
    uuid = UUID(unique=True)
    team_id = ForeignKey(Team, null=True, on_delete=OnDelete.restrict)
    created_by_id = ForeignKey(User, null=True, on_delete=OnDelete.set_null)
    is_system = Boolean(default=False)
    name = Text()
    slug = Text()
    description = Text(null=True, default=None)
    version = Integer(default=1)
    deleted_at = columns.moment()
    created_at = columns.created_at()
    updated_at = columns.created_at()


class BlueprintVersion(Table, tablename="blueprint_versions", db=DB):
    """The SQL of one version, which never changes, and the current definitions of its `variables`. `metadata` is the
    result of validation: dialects, number of statements, extensions."""

    id = BigSerial(primary_key=True)
    blueprint_id = ForeignKey(Blueprint, null=False, on_delete=OnDelete.cascade)
    version = Integer()
    sql_content = Text()
    size_bytes = Integer()
    variables = JSONB(null=True, default=None)
    metadata = JSONB(null=True, default=None)
    created_at = columns.created_at()
    one_per_version = Unique([blueprint_id, version])


class BlueprintApplication(Table, tablename="blueprint_applications", db=DB):
    """One application of a blueprint to a database.

    `definitions` are the variables as they were declared at the request. `values_sealed` are their values, until the
    end; `shown_values` the same without secret ones. `attempt` distinguishes the current worker from one that was
    superseded. `session_reference` identifies the engine's session or transaction, so that the next worker can find out
    what became of it. `scratch_name` is the temporary copy on the host, as long as there may be one.
    """

    id = BigSerial(primary_key=True)
    blueprint_id = ForeignKey(Blueprint, null=False, on_delete=OnDelete.restrict)
    blueprint_version = Integer()
    database_id = ForeignKey(Database, null=False, on_delete=OnDelete.restrict)
    requested_by_id = ForeignKey(User, null=True, on_delete=OnDelete.set_null)
    status = Text(default="pending")
    is_dry_run = Boolean(default=False)
    at_creation = Boolean(default=False)
    definitions = JSONB(null=True, default=None)
    shown_values = JSONB(null=True, default=None)
    values_sealed = Bytea(null=True, default=None)
    statements_total = Integer(default=0)
    attempt = Integer(default=0)
    losses = Integer(default=0)
    session_reference = Text(null=True, default=None)
    scratch_name = Text(null=True, default=None)
    error_message = Text(null=True, default=None)
    total_duration_ms = Integer(null=True, default=None)
    started_at = columns.moment()
    completed_at = columns.moment()
    created_at = columns.created_at()


class BlueprintStatement(Table, tablename="blueprint_statements", db=DB):
    """One entry of an application's log. `sql` is shortened and has no secret values."""

    id = BigSerial(primary_key=True)
    application_id = ForeignKey(BlueprintApplication, null=False, on_delete=OnDelete.cascade)
    index = Integer()
    line = Integer()
    kind = Text()
    sql = Text()
    status = Text(default="pending")
    rows = BigInt(null=True, default=None)
    duration_ms = Integer(null=True, default=None)
    error_code = Text(null=True, default=None)
    error_message = Text(null=True, default=None)
    note = Text(null=True, default=None)
    one_per_index = Unique([application_id, index])
