"""What operators see, on the wire."""

from typing import Annotated, Literal
from uuid import UUID

from msgspec import Meta, Struct
from msgspec.structs import asdict

from app.backups.restores.evacuation import EvacuationStatus
from app.contracts.base import Engine
from app.core.clock import Moment
from app.engines.tls import TlsMode
from app.hosts.changes import MOST_OVERCOMMIT, MOST_STORAGE_GB
from app.hosts.registration import DEFAULT_CAPACITY
from app.operations.schemas import OperationView

NO_NUL = r"\A[^\x00]*\Z"
HostName = Annotated[str, Meta(min_length=1, max_length=253, pattern=r"\A[A-Za-z0-9_.:-]+\Z")]
"""A name or an address, as a certificate has it."""
Port = Annotated[int, Meta(ge=1, le=65_535)]
Count = Annotated[int, Meta(ge=1, le=10_000_000)]


class HostRoom(Struct, kw_only=True):
    """How many more databases and connections a host may take."""

    databases: int
    connections: int
    """The sum of the connection limits of further databases."""


class HostView(Struct, kw_only=True):
    """A server that holds tenants' databases."""

    object: Literal["host"] = "host"
    id: int
    db_type: Engine
    flavour: str
    version: str
    region: str
    host: str
    port: int
    databases: int
    capacity: int
    connections: int
    """The sum of the connection limits of its databases."""
    connection_capacity: int
    """Sessions that tenants may have open on it together."""
    connection_overcommit: int
    """How often each of them may be allocated."""
    storage_gb: int | None
    """What its databases may take together, as its operator said; null where nobody did."""
    connection_room: int
    """What the sum of connection limits may be: the one times the other."""
    open_connections: int
    """Sessions that were open a few seconds ago."""
    connections_short: bool
    """Databases that have more than their share of them get no more for now."""
    load: float
    """From 0 for an empty host to 1 for a full one, by whichever of the two is scarcer."""
    room: HostRoom
    draining: bool
    """It takes no new databases."""
    failure: str | None
    """Why it is passed over for now."""
    tls: TlsMode
    ca: bool
    """Whether the server's certificate has to be of an authority of its own."""
    extensions: list[str]


class AddHost(Struct, kw_only=True, forbid_unknown_fields=True):
    """A server, and an account there that may provision. Clients reach it at the same address unless another is given.
    Without `tls` a server on this machine is reached without, others with `verify-full`."""

    db_type: Engine
    region: Annotated[str, Meta(min_length=1, max_length=32)]
    admin_host: HostName
    admin_port: Port | None = None
    """The engine's usual one unless given."""
    admin_user: Annotated[str, Meta(min_length=1, max_length=128, pattern=NO_NUL)]
    admin_password: Annotated[str, Meta(max_length=1024, pattern=NO_NUL)]
    admin_database: Annotated[str, Meta(min_length=1, max_length=128, pattern=NO_NUL)] | None = None
    tls: Literal["disable", "require", "verify-full"] | None = None
    ca: Annotated[str, Meta(min_length=1, max_length=262_144)] | None = None
    """A PEM with the authorities that sign the server's certificate; those that the service's machine trusts unless
    given."""
    public_host: HostName | None = None
    public_port: Port | None = None
    capacity: Count = DEFAULT_CAPACITY
    """The most databases."""
    connection_capacity: Count | None = None
    """Sessions that tenants may have open together; what the server admits unless given."""
    connection_overcommit: Annotated[int, Meta(ge=1, le=MOST_OVERCOMMIT)] | None = None
    """How often each of them may be allocated, 1 for strict; unless given what a registered host has, and 10 for a new
    one."""
    storage_gb: Annotated[int, Meta(ge=1, le=MOST_STORAGE_GB)] | None = None
    """What its databases may take together: nothing is restored or cloned there beyond it; unless given what a
    registered host has."""


class AddedHost(HostView, kw_only=True):
    """A host that was just registered."""

    shortcomings: list[str]
    """What it lacks and what follows, a sentence each."""

    @classmethod
    def of(cls, host: HostView, shortcomings: list[str]) -> "AddedHost":
        return cls(**asdict(host), shortcomings=shortcomings)


class RemovedEngineHost(Struct, kw_only=True):
    object: Literal["host"] = "host"
    id: int
    deleted: bool = True


class EvacuateHost(Struct, kw_only=True, forbid_unknown_fields=True):
    discard: bool = False
    """Give up what lies on the host of databases that were moved already, and of those that are due to be destroyed,
    whether they have a final backup or not: it never comes back."""


class EvacuatedDatabase(Struct, kw_only=True):
    """The evacuation of one database of a lost host."""

    object: Literal["evacuated_database"] = "evacuated_database"
    database_uuid: UUID
    name: str
    team: str | None
    status: EvacuationStatus
    host: str
    """`host:port` as it is now."""
    backup_uuid: UUID | None
    data_of: Moment | None
    """The moment that its data is of."""
    age_seconds: int | None
    """What was written later is not there."""


class EvacuationView(Struct, kw_only=True):
    """The databases that were on a lost host, and those that still are."""

    object: Literal["evacuation"] = "evacuation"
    host_id: int
    databases: list[EvacuatedDatabase]


class PoolView(Struct, kw_only=True):
    """Databases that are kept ready for creates, of one engine in one region."""

    object: Literal["pool"] = "pool"
    db_type: Engine
    region: str
    size: int
    """How many there are to be."""
    size_from: Literal["operator", "setting"]
    ready: int
    coming: int
    """That are being made."""
    missing: int
    open_hosts: int
    """Hosts that take new databases."""


class FindingView(Struct, kw_only=True):
    """A rule that scheduled consistency checks have found violated, and that is not over as far as they know."""

    object: Literal["finding"] = "finding"
    id: int
    rule: str
    subject: str
    """A database's uuid, a name on a host, or a key."""
    detail: str
    database: str | None
    """The name of the database that it is about."""
    team: str | None
    host_id: int | None
    """Null for what concerns our own records."""
    first_seen_at: Moment
    last_seen_at: Moment


class CheckView(Struct, kw_only=True):
    """A run of the consistency check: what it finds are the findings afterwards."""

    object: Literal["check"] = "check"
    schedule_id: str
    """The Schedule in Temporal whose run it is."""
    temporal_url: str | None
    """Its page in Temporal's web pages."""


class SealView(Struct, kw_only=True):
    """A link of the chain of hashes over the audit log of all teams."""

    object: Literal["audit_seal"] = "audit_seal"
    id: int
    sealed_at: Moment
    events: int
    """Events that it is over."""
    last_event_id: int
    """The last of them."""
    hash: str
    """Hexadecimal. The heads that are kept with the backups are such, and show whether the end was cut off."""
    previous: str
    """The hash of the seal before; zeros for the first."""


class OperatorOperationView(OperationView, kw_only=True):
    """An operation as its team sees it, and what helps operators."""

    database: str
    """Its name."""
    team_id: int
    team: str
    """Its name."""
    overdue: bool
    """It is open after its deadline."""
    overdue_since: Moment | None
    """When its team was notified of that."""
    operator_cancellable: bool
    """Operators cancel also what no client asked for."""
    temporal_url: str | None
    """Its workflow in Temporal's web pages."""
