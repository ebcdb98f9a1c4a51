"""The shapes of databases on the wire. Interface specification, sections 2.1 and 4.4 to 4.9."""

from typing import Annotated, Any, Literal, TypeVar
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from app.contracts.base import DatabaseStatus, Engine
from app.core.clock import Moment
from app.databases.labels import labels_schema
from app.engines.tls import TlsMode
from app.quotas.plans import Limits, Quotas

Value = TypeVar("Value")

Name = Annotated[str, Meta(pattern=r"\A[a-z0-9][a-z0-9-]{0,62}\Z", min_length=1, max_length=63)]
"""Lowercase letters, digits and hyphens; starts with a letter or digit."""
RegionCode = Annotated[str, Meta(pattern=r"\A[^\x00]*\Z", max_length=255)]
"""The catalog lists them."""
StorageGB = Annotated[float, Meta(gt=0, le=1_000_000)]
Connections = Annotated[int, Meta(ge=1, le=100_000)]
Percent = Annotated[int, Meta(ge=1, le=100)]


PlanName = Annotated[
    Literal["free", "launch", "grow", "pro"], Meta(description="`free` unless given, or the source's.")
]


Labels = Annotated[dict[str, str], Meta(extra_json_schema=labels_schema(removable=False))]
ChangedLabels = Annotated[dict[str, str | None], Meta(extra_json_schema=labels_schema(removable=True))]
"""What they may hold, `app.databases.labels` checks: its errors name the label."""


class DatabaseSource(Struct, kw_only=True, forbid_unknown_fields=True):
    """What a new database is filled from: a completed backup, or a running database as it is now."""

    backup_uuid: UUID | UnsetType = UNSET
    database_uuid: UUID | UnsetType = UNSET
    pause_source: bool = False
    """With `database_uuid`: where the host can copy it at once, its sessions end, and new ones wait until it is copied;
    5 seconds at most, and once."""


class CreateDatabase(Struct, kw_only=True, forbid_unknown_fields=True):
    name: Name
    db_type: Annotated[Engine, Meta(description="`postgres` unless given, or what the source is.")] | UnsetType = UNSET
    region: RegionCode | UnsetType = UNSET
    plan: PlanName | UnsetType = UNSET
    team_id: Annotated[int, Meta(ge=1, le=2**63 - 1)] | UnsetType = UNSET
    storage_hard_limit_gb: StorageGB | None = None
    connection_hard_limit: Connections | None = None
    warning_threshold_pct: Percent | None = None
    blueprint_uuid: UUID | UnsetType = UNSET
    blueprint_variables: dict[str, Any] | None = None
    deletion_protection: bool = False
    expires_at: Moment | None = None
    """When it deletes itself, as a DELETE would: 5 minutes to 10 years ahead."""
    labels: Labels = {}
    """To find it by. One that is filled from a source has these, not the source's."""
    source: DatabaseSource | UnsetType = UNSET
    """What its data is to be. Engine, plan, limits and region are the source's unless given."""

    @property
    def engine(self) -> Engine:
        return Engine.POSTGRES if isinstance(self.db_type, UnsetType) else self.db_type

    @property
    def plan_name(self) -> str:
        return "free" if isinstance(self.plan, UnsetType) else self.plan

    @property
    def quotas(self) -> Quotas:
        return Quotas(
            storage_hard_limit_gb=self.storage_hard_limit_gb,
            connection_hard_limit=self.connection_hard_limit,
            warning_threshold_pct=self.warning_threshold_pct,
        )


class ChangeDatabase(Struct, kw_only=True, forbid_unknown_fields=True):
    """At least one field is given; what is left out stays as it is."""

    name: Name | UnsetType = UNSET
    deletion_protection: bool | UnsetType = UNSET
    """While it is true, a DELETE is refused. Not together with `expires_at`."""
    expires_at: Moment | UnsetType | None = UNSET
    """When it deletes itself, as a DELETE would: 5 minutes to 10 years ahead. Null: never."""
    labels: ChangedLabels | UnsetType | None = UNSET
    """Labels to set, or with null to take away; the others stay. Null for all of them takes all away."""


class ChangeQuotas(Struct, kw_only=True, forbid_unknown_fields=True):
    """Overrides of a database's limits. A field that is left out stays as it is; null returns it to the plan's
    limit."""

    storage_hard_limit_gb: StorageGB | UnsetType | None = UNSET
    connection_hard_limit: Connections | UnsetType | None = UNSET
    warning_threshold_pct: Percent | UnsetType | None = UNSET

    def over(self, quotas: Quotas) -> Quotas:
        """The quotas after this change."""
        return Quotas(
            storage_hard_limit_gb=changed(self.storage_hard_limit_gb, quotas.storage_hard_limit_gb),
            connection_hard_limit=changed(self.connection_hard_limit, quotas.connection_hard_limit),
            warning_threshold_pct=changed(self.warning_threshold_pct, quotas.warning_threshold_pct),
        )


class StatusReason(Struct, frozen=True, kw_only=True):
    """Why a database is not simply open: who or what has paused it, or that it may not write."""

    code: Literal["team", "operator", "runtime", "storage", "resuming", "restoring", "frozen"]
    message: str


class DatabaseView(Struct, kw_only=True):
    """A Database. `limits` is what is in force: the plan's limits with `quotas` over them."""

    object: Literal["database"] = "database"
    uuid: UUID
    name: str
    status: DatabaseStatus
    status_reason: StatusReason | None
    """Why it is paused, or that an active one may not write. Null where there is nothing to say."""
    region: str
    plan: str
    quotas: Quotas
    limits: Limits
    connections_limited_to: int | UnsetType | None = UNSET
    """Where `db_password` is: how many connections it gets for now, because its host is short of them; null where it
    gets as many as `limits` says."""
    db_type: Engine
    host: str
    port: int
    tls_mode: TlsMode
    """How Headwater itself connects to its host; a client that asks for the same gets in."""
    tls_ca: str | UnsetType | None = UNSET
    """Where `db_password` is: a PEM of the authorities of the certificate, null where clients know them."""
    db_name: str
    db_username: str
    team_id: int | None
    team_name: str | None
    db_password: str | UnsetType = UNSET
    """On create and single get only."""
    connection_string: str
    """With the password where `db_password` is, masked elsewhere."""
    deletion_protection: bool
    """While it is true, a DELETE is refused."""
    expires_at: Moment | None
    """When it deletes itself, as a DELETE would."""
    labels: dict[str, str]
    created_at: Moment
    updated_at: Moment


class DeletedDatabaseView(DatabaseView, kw_only=True):
    """A deleted Database that can be undeleted."""

    deleted_at: Moment
    destroy_scheduled_at: Moment
    """Until when the database can be undeleted: then its data is destroyed, as soon as its final backup is there where
    it has to have one. Earlier where the team deletes more databases than its tier keeps."""
    final_backup_uuid: UUID | None


class Provisioning(Struct, kw_only=True):
    """The work that goes on after a 202, and where to ask for its end."""

    completed: bool
    waited_seconds: int
    poll_url: str | None


class DeletedDatabase(Struct, kw_only=True):
    object: Literal["database"] = "database"
    uuid: UUID
    deleted: bool = True
    cancelled_provision_jobs: int
    destroy_scheduled_at: Moment | None
    """Until when the database can be undeleted: then its data is destroyed, as soon as its final backup is there where
    it has to have one. Earlier where the team deletes more databases than its tier keeps."""
    has_remote_resources: bool


def changed(new: Value | UnsetType, old: Value) -> Value:
    """What a field is after a change that may leave it out."""
    return old if isinstance(new, UnsetType) else new
