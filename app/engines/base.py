"""The adapter that every engine implements: one object speaks to one host as its administrator.

Every method is safe to repeat. An activity may run twice, or die between two statements of one method, and
the next call must find its way from whatever is there. Names are opaque (`app.core.ids.engine_name`), the same
for the database and its login role, and never come from a user.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import ClassVar

import msgspec

from app.contracts.base import Engine
from app.engines.errors import CredentialsRefused as CredentialsRefused
from app.engines.errors import EngineError as EngineError
from app.engines.errors import HostUnavailable as HostUnavailable
from app.engines.errors import LoginRefused as LoginRefused
from app.engines.errors import NameTaken as NameTaken
from app.engines.errors import TenantFull as TenantFull
from app.engines.querying import QueryLimits, ReadSession, WriteSession
from app.engines.scripts import ScriptEnd, ScriptSession
from app.engines.tls import TlsPolicy

_UNSAID = TlsPolicy()

SURVEY_SECONDS = 10.0
"""What the server may take to tell the sizes of all files, where it tells them only together."""
MEASURE_SECONDS = 20.0


class AdminAddress(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How the service reaches a host. Not what tenants are told: that is the host's public address.

    `tls` holds for every connection to the host, the tenants' own too that the service opens.
    """

    host: str
    port: int
    user: str
    password: str
    database: str | None = None
    tls: TlsPolicy = _UNSAID

    def sealable(self) -> bytes:
        """What is kept sealed. `tls` isn't: it is no secret, and an operator reads and changes it."""
        return msgspec.json.encode(msgspec.structs.replace(self, tls=_UNSAID))

    def __repr__(self) -> str:
        return f"AdminAddress({self.user}@{self.host}:{self.port})"


class Tenant(msgspec.Struct, frozen=True, kw_only=True):
    """One tenant on a host.

    `name` is the database's and the role's, matching `^[a-z][a-z0-9]{0,31}$`; `marker` is what the engine
    carries beside it, so that a name found on the host can be told from a stranger's.
    """

    name: str
    password: str
    marker: str

    def __repr__(self) -> str:
        return f"Tenant({self.name})"


class EngineLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What the engine itself enforces. `connections` is at least 1, else `ValueError`: on one engine 0 means
    none, on the other it means no limit at all."""

    connections: int

    def __post_init__(self) -> None:
        if self.connections < 1:
            raise ValueError("a connection limit is at least 1")


class HostFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a host says of itself. `shortcomings` are sentences for the operator: what this host lacks, and
    what follows from it for the tenants."""

    flavour: str
    """`postgres`, `mysql` or `mariadb`."""
    version: str
    """As the server reports it, such as `18.6` or `10.11.19-MariaDB`."""
    max_connections: int
    """Sessions that tenants may hold in all: the server's limit less what it keeps for administrators."""
    shortcomings: tuple[str, ...] = ()


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """One tenant database as measured on its host."""

    storage_bytes: int
    connections: int


class SessionLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What one session of a tenant's may take of what the whole server shares. Beyond it the session is ended."""

    idle_transaction_seconds: float = 3600
    """How long a transaction may stay open while nothing is done in it."""
    transaction_seconds: float = 86_400
    """How long one may stay open at all, or be prepared."""
    memory_bytes: int = 2**30
    """What it may hold, where the server tells."""
    shared_percent: int = 50
    """Of the server's locks and prepared statements: when so much is taken, the sessions that hold most are ended."""


class SessionsEnded(msgspec.Struct, frozen=True, kw_only=True):
    tenant: str
    reason: str
    """`idle_transaction`, `long_transaction`, `prepared_transaction`, `locks`, `memory` or `prepared_statements`."""


class SharedResource(msgspec.Struct, frozen=True, kw_only=True):
    """Something that all tenants of a server use up together."""

    name: str
    """In Prometheus' style, such as `transaction_ids`."""
    used: float
    capacity: float | None
    """Where the server stops; None where nothing is said."""
    concern: str | None = None
    """What an operator has to see to, however much is used up."""


class Measuring(ABC):
    """A measurement of one host that is under way, some databases at a time."""

    @abstractmethod
    async def usage(self, names: Sequence[str], seconds: float) -> dict[str, Usage]:
        """Storage and open sessions of these databases. Missing ones are left out. Raises `EngineError` when the
        server takes longer than that, or refuses; others may be asked for afterwards. Raises `HostUnavailable` when
        nothing more can be asked."""


class FoundTenant(msgspec.Struct, frozen=True, kw_only=True):
    """A database or role found on a host that carries a marker of ours."""

    name: str
    marker: str
    installation: str
    """Of whom the marker is: the id that its adapter was opened with. Empty when it doesn't say."""
    has_database: bool
    has_role: bool
    admits: bool
    """Logins are possible: access was not ended."""
    may_connect: bool
    """Its role holds the right to connect to its database."""
    may_create: bool
    """Its role holds the right to create in its database, which a frozen one doesn't. On MySQL, as our own table on the
    host has it."""
    has_schema: bool
    """It owns a schema in its database. On MySQL the two are one."""


class EngineAdapter(ABC):
    """One host of one engine, spoken to as its administrator over a small bounded pool of connections."""

    engine: ClassVar[Engine]
    label: ClassVar[str]
    """What a person calls the engine, such as `PostgreSQL`."""
    uri_scheme: ClassVar[str]
    """Of a connection string to it, such as `postgresql`."""
    default_port: ClassVar[int]
    transactional_scripts: ClassVar[bool]
    """Whether a script is one transaction, which can be rolled back. Otherwise each statement lasts at once, and
    `copy_schema` makes the place to try them."""

    def __init__(self, address: AdminAddress, installation: str = "") -> None:
        """`installation` is written beside every marker, so that two of them may share a host. It is lower-case
        letters and digits, or empty."""
        self.address = address
        self.installation = installation

    @abstractmethod
    async def close(self) -> None:
        """Closes the pool."""

    @abstractmethod
    async def inspect_host(self) -> HostFacts:
        """Version, room and shortcomings. Raises `EngineError` for a server too old to isolate tenants or an
        administrator who may not provision, saying what is missing; `HostUnavailable` when nobody answers."""

    async def extensions(self) -> list[str]:
        """What a tenant may add to its own database with CREATE EXTENSION, by name. None where the engine has no such
        thing."""
        return []

    @classmethod
    def missing_extensions(cls, listed: Sequence[str], present: Sequence[str]) -> list[str]:
        """Those of an operator's list that a host lacks which has these. Raises `EngineError` for one that tenants may
        not have. None where the engine has no such thing."""
        return []

    @abstractmethod
    async def harden_host(self, extensions: Sequence[str] = ()) -> tuple[str, ...]:
        """Closes what a fresh server leaves open to every account, and has new databases made with the extensions of
        an operator's list, where there is such a thing. Returns a sentence for each thing that this administrator was
        not allowed to do. Raises `EngineError` for an extension that tenants may not have."""

    @abstractmethod
    async def create(self, tenant: Tenant, limits: EngineLimits) -> None:
        """Makes the role and the database, isolated from all others, limited and marked. Finishes what an earlier
        call began, and sets the password and limits given now. A revocation stays in force: a call that was
        late must not open what was closed since. Raises `NameTaken`."""

    @abstractmethod
    async def verify_login(self, tenant: Tenant) -> None:
        """Logs in with the tenant's own credentials, makes a table, writes, reads and drops it. Raises
        `LoginRefused` when the credentials are refused."""

    async def create_verified(self, tenant: Tenant, limits: EngineLimits) -> None:
        """`create`, then `verify_login`. An engine may let the parts of the two overlap that don't wait for each
        other."""
        await self.create(tenant, limits)
        await self.verify_login(tenant)

    @abstractmethod
    async def log_in(self, tenant: Tenant) -> None:
        """Logs in with the tenant's own credentials and asks for nothing but a constant: the way to see whether a
        database answers without touching what is in it. Raises `LoginRefused`, or `CredentialsRefused` where
        `restore_credentials` may help; `TenantFull`."""

    @abstractmethod
    async def restore_credentials(self, tenant: Tenant) -> None:
        """Gives the tenant's account the password given now, and takes back what it has set for itself that ends its
        logins. Opens nothing that was closed. Raises `EngineError` for a tenant that isn't there."""

    @abstractmethod
    async def set_limits(self, tenant: Tenant, limits: EngineLimits) -> None:
        """Puts the limits in force for new sessions. Sessions already open stay."""

    @abstractmethod
    async def revoke(self, tenant: Tenant) -> None:
        """Ends all access. When it returns, no session is open, none can be opened, and not one more statement
        of the tenant's succeeds. Data and password stay. A tenant that doesn't exist is revoked already."""

    @abstractmethod
    async def restore(self, tenant: Tenant, *, frozen: bool = False) -> None:
        """Undoes `revoke`: the same credentials work again. What was revoked half made is whole afterwards, with all
        the grants that a tenant has, or those of a frozen one."""

    @abstractmethod
    async def freeze(self, tenant: Tenant) -> None:
        """Ends all writing but that which frees space: when it returns, the tenant can read, DELETE, TRUNCATE and DROP,
        and nothing it does lets it write or create. Sessions that were open are ended, once. Raises `EngineError` for
        a tenant that isn't there."""

    @abstractmethod
    async def thaw(self, tenant: Tenant) -> None:
        """Undoes `freeze`: the tenant has exactly the rights that it had. One that isn't frozen has all the grants of
        a tenant afterwards."""

    @abstractmethod
    async def reclaim(self, tenant: Tenant) -> None:
        """Gives the space that a frozen tenant's deletions left inside its tables back to the disk, as far as it can be
        told. Raises `LoginRefused` where it takes the tenant's own session and there is none."""

    @abstractmethod
    async def repair(self, tenant: Tenant) -> None:
        """Gives the tenant back what it can take from itself: its rights on its database and the schema `public`,
        which DROP OWNED removes on PostgreSQL; the database, which it may drop on MySQL. Touches no data, and leaves
        closed what was revoked, and frozen what is frozen. Raises `EngineError` when parts are missing that it can't
        have removed."""

    @abstractmethod
    async def destroy(self, tenant: Tenant) -> None:
        """Removes database, role and marker, with the sessions that hold them. What is gone already is success;
        what carries a stranger's marker is left alone, with `NameTaken`."""

    @abstractmethod
    def script_session(self, tenant: Tenant, seconds: float) -> AbstractAsyncContextManager[ScriptSession]:
        """The tenant's own session for one script, of whose statements none takes longer than that. Raises
        `LoginRefused`."""

    @abstractmethod
    async def end_script(self, reference: str) -> ScriptEnd:
        """Ends the session that `ScriptSession.begin` named, and tells what became of its script."""

    async def copy_schema(self, source: Tenant, target: Tenant) -> list[str]:
        """Copies the schema of one tenant, without its data, into another's empty database, by sessions of the two.
        Returns what couldn't be copied, a sentence each."""
        raise NotImplementedError("scripts are transactions here: nothing needs a copy")

    @abstractmethod
    def measuring(self, names: Sequence[str]) -> AbstractAsyncContextManager[Measuring]:
        """A measurement of these databases, in parts of the caller's choice. What the server tells of all of them at
        once is asked for here, within `SURVEY_SECONDS`."""

    async def measure(self, names: Sequence[str]) -> dict[str, Usage]:
        """Storage and open sessions of these databases, in one look at the host. Missing ones are left out."""
        async with self.measuring(names) as measuring:
            return await measuring.usage(names, MEASURE_SECONDS)

    @abstractmethod
    async def sessions(self, names: Sequence[str]) -> dict[str, frozenset[str]]:
        """The sessions that these tenants hold open now, each by an id that none after it has: their own, and those of
        their helpers, which work for them. Tenants without one are left out."""

    @abstractmethod
    async def end_excessive_sessions(self, names: Sequence[str], limits: SessionLimits) -> list[SessionsEnded]:
        """Ends the sessions of these tenants that take more than their limits of what the server shares, some hundreds
        at most: one entry each. Works while there is none of it left."""

    @abstractmethod
    async def shared_resources(self) -> list[SharedResource]:
        """How much of what all tenants share is used up."""

    @abstractmethod
    async def list_tenants(self) -> list[FoundTenant]:
        """Everything on this host that carries a marker of ours, whole or in part."""

    @abstractmethod
    async def make_reader(self, tenant: Tenant, password: str) -> None:
        """Makes the tenant's SELECT-only account, or puts right what it may do and gives it this password. It is
        closed, opened and removed with the tenant's own. Raises `LoginRefused` for a tenant whose access was ended."""

    @abstractmethod
    def reading(self, tenant: Tenant, password: str, limits: QueryLimits) -> AbstractAsyncContextManager[ReadSession]:
        """A session of the SELECT-only account, of its own and closed after the block. Raises `LoginRefused`."""

    @abstractmethod
    def writing(self, tenant: Tenant, limits: QueryLimits) -> AbstractAsyncContextManager[WriteSession]:
        """A session of the tenant's own account, closed after the block. Raises `LoginRefused`."""

    async def end_overdue(self, seconds: float) -> int:
        """Ends what questions' statements have run on the host for longer than that, whoever began them being gone.
        Returns how many. Nothing to do where the engine itself ends every statement in time."""
        return 0
