"""The adapter that every engine implements: one object manages one host, as its administrator.

Every method is safe to repeat. An activity may run twice, or die between two statements of a method; the next call has
to continue from whatever is there. Names are opaque (`app.core.ids.engine_name`), the same for the database and its
login role, and never chosen by a user.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import ClassVar

from app.contracts.base import Engine
from app.engines.dumping import Content, Copied, Dump, DumpFormat, DumpPurpose
from app.engines.errors import CredentialsRefused as CredentialsRefused
from app.engines.errors import EngineError as EngineError
from app.engines.errors import HostFull as HostFull
from app.engines.errors import HostUnavailable as HostUnavailable
from app.engines.errors import LoginRefused as LoginRefused
from app.engines.errors import NameTaken as NameTaken
from app.engines.errors import TenantFull as TenantFull
from app.engines.errors import accepted_when_full as accepted_when_full
from app.engines.hosts import AdminAddress as AdminAddress
from app.engines.hosts import HostFacts as HostFacts
from app.engines.hosts import SessionCounts as SessionCounts
from app.engines.hosts import SessionLimits as SessionLimits
from app.engines.hosts import SessionsEnded as SessionsEnded
from app.engines.hosts import SharedResource as SharedResource
from app.engines.pacing import Pace
from app.engines.querying import QueryLimits, ReadSession, WriteSession
from app.engines.scripts import ScriptEnd, ScriptSession
from app.engines.steps import STEPS, traced
from app.engines.tenants import Access as Access
from app.engines.tenants import Counters as Counters
from app.engines.tenants import EngineLimits as EngineLimits
from app.engines.tenants import FoundTenant as FoundTenant
from app.engines.tenants import HeldLimits as HeldLimits
from app.engines.tenants import Login as Login
from app.engines.tenants import Tenant as Tenant
from app.engines.tenants import Usage as Usage

SURVEY_SECONDS = 10.0
"""The time limit for reading the sizes of all files, on servers that report them only all together."""
MEASURE_SECONDS = 20.0
COPY_HELD_SECONDS = 5.0
"""How long at most a copy by the server itself keeps the clients of its source waiting."""
COUNT_SECONDS = 5.0
"""The time limit for reading what a server has counted."""


class Measuring(ABC):
    """A measurement of one host in progress, for some databases at a time."""

    @abstractmethod
    async def usage(self, names: Sequence[str], seconds: float) -> dict[str, Usage]:
        """Storage and open sessions of these databases; missing ones are left out. Raises `EngineError` when the
        server refuses or takes longer than `seconds`; others can still be measured. Raises `HostUnavailable` when no
        more can be measured."""


class EngineAdapter(ABC):
    """One host of one engine, managed as its administrator over a small pool of connections."""

    engine: ClassVar[Engine]
    label: ClassVar[str]
    """The engine's display name, such as `PostgreSQL`."""
    uri_scheme: ClassVar[str]
    """The scheme of its connection strings, such as `postgresql`."""
    default_port: ClassVar[int]
    telemetry_name: ClassVar[str]
    """What OpenTelemetry calls the engine: https://opentelemetry.io/docs/specs/semconv/db/"""
    transactional_scripts: ClassVar[bool]
    """Whether a script runs in one transaction, which can be rolled back. Otherwise each statement is permanent, and
    the script is rehearsed on a copy made by `copy_schema`."""
    flavours: ClassVar[frozenset[str]]
    """The possible values of `HostFacts.flavour`. No other engine has one of them."""
    dump_series: ClassVar[int]
    """How many of a version's first numbers make its series: a server loads dumps of its own series and of older
    ones."""
    rotation_renames: ClassVar[bool]
    """Whether `add_credential` makes a new account. Otherwise it gives the account a second password."""
    distinguishes_sessions: ClassVar[bool]
    """Whether the engine shows which credential opened a session."""

    replaces_whole: ClassVar[bool] = False
    """Whether `replace` exchanges databases at once. Otherwise data is replaced by `clear` and `load`."""

    def __init_subclass__(cls) -> None:
        """Wraps the steps of every engine in spans, of which its adapter need not know."""
        for step in set(STEPS) & set(vars(cls)):
            setattr(cls, step, traced(vars(cls)[step]))

    def __init__(self, address: AdminAddress, installation: str = "") -> None:
        """`installation` is written with every marker, so that two installations may share a host. Lower-case
        letters and digits, or empty."""
        self.address = address
        self.installation = installation

    @abstractmethod
    async def close(self) -> None:
        """Closes the connection pool."""

    @abstractmethod
    async def inspect_host(self) -> HostFacts:
        """Version, capacity and shortcomings. Raises `EngineError` if the server is too old to isolate tenants or
        the administrator lacks rights, saying which; `HostUnavailable` if nobody answers."""

    async def extensions(self) -> list[str]:
        """The names of the extensions that a tenant may create in its own database. Empty for an engine without
        extensions."""
        return []

    @classmethod
    def missing_extensions(cls, listed: Sequence[str], present: Sequence[str]) -> list[str]:
        """The extensions of an operator's list that a host with the `present` ones lacks. Raises `EngineError` for
        one that tenants may not have. Empty for an engine without extensions."""
        return []

    @abstractmethod
    async def harden_host(self, extensions: Sequence[str] = ()) -> tuple[str, ...]:
        """Closes what a new server leaves open to every account, and prepares new databases with the extensions of
        an operator's list, if the engine has extensions. Returns a sentence for each thing that this administrator
        was not allowed to do. Raises `EngineError` for an extension that tenants may not have."""

    @abstractmethod
    async def create(self, tenant: Tenant, limits: EngineLimits) -> None:
        """Creates the role and the database, isolated, limited and marked. Finishes what an earlier call began, and
        sets the given password and limits. Keeps a revocation: a late call must not reopen what was closed since.
        Raises `NameTaken`."""

    @abstractmethod
    async def verify_login(self, tenant: Tenant) -> None:
        """Logs in with the tenant's credentials; creates, writes, reads and drops a table. Raises `LoginRefused`
        when the credentials are refused."""

    async def create_verified(self, tenant: Tenant, limits: EngineLimits) -> None:
        """`create`, then `verify_login`. An engine may overlap parts of the two that don't depend on each other. A
        client that has taken all sessions by then, with the credentials that its create was answered with, has
        verified them itself."""
        await self.create(tenant, limits)
        with accepted_when_full():
            await self.verify_login(tenant)

    @abstractmethod
    async def log_in(self, tenant: Tenant) -> None:
        """Logs in with the tenant's credentials and selects a constant, which shows that the database answers
        without touching its data. Raises `LoginRefused`, or `CredentialsRefused` if `restore_credentials` may help;
        `TenantFull`."""

    @abstractmethod
    async def restore_credentials(self, tenant: Tenant) -> None:
        """Sets the account's password to the given one, and resets the account's own settings that prevent logins.
        Opens nothing that was closed. Raises `EngineError` for a tenant that doesn't exist."""

    @abstractmethod
    async def add_credential(self, tenant: Tenant, new: Login) -> None:
        """Makes a second credential of the tenant's main account: afterwards the present one and `new` both log in,
        and share the database's connection limit. `new.name` is a new login's where `rotation_renames`, else the
        account's present name. May be repeated, also when the answer to the first call was lost: it sets the password
        again. While the tenant is revoked the new one is closed too, and `restore_access` opens it. Raises
        `EngineError` for a tenant that doesn't exist."""

    @abstractmethod
    async def retire_credential(self, tenant: Tenant, current: Login, old: Login, *, end_sessions: bool) -> None:
        """Ends the overlap: afterwards only `current` logs in, and what `old` owned belongs to the tenant. Where
        `distinguishes_sessions`, the sessions of `old` end. Elsewhere they go on, unless `end_sessions` ends all of the
        account's. May be repeated, also when `old` is gone. Raises `EngineError` for a tenant or a `current` that
        doesn't exist: nothing is retired then."""

    @abstractmethod
    async def put_user(self, tenant: Tenant, login: Login, *, keep_rights: bool = False) -> None:
        """Makes a user of the tenant's database, or gives an existing one this password, access and limit. A read-only
        user may read what exists and what is made later; with `keep_rights`, for a change of the password alone, an
        existing user keeps the rights that its tenant has left it. May be repeated. While the tenant is revoked the
        user is closed, and `restore_access` opens it. Raises `EngineError` for a tenant that doesn't exist."""

    @abstractmethod
    async def end_user_sessions(self, tenant: Tenant, name: str) -> None:
        """Ends the sessions of a user whose password nobody knows yet, so that none was opened with it. May be
        repeated. Raises `EngineError` for a tenant that doesn't exist, and when a session doesn't end in time."""

    @abstractmethod
    async def remove_user(self, tenant: Tenant, name: str) -> None:
        """Ends the user's access and sessions, and removes it; what it owned belongs to the tenant. Does nothing for
        a user that doesn't exist. May be repeated. Raises `EngineError` for a tenant that doesn't exist."""

    @abstractmethod
    async def log_in_as(self, tenant: Tenant, login: Login) -> None:
        """`log_in` as this account: proves that its credentials work, and touches no data. Raises `LoginRefused`, or
        `CredentialsRefused` if setting the password again may help; `TenantFull`."""

    @abstractmethod
    async def open_sessions(self, tenant: Tenant) -> dict[str, int]:
        """The number of open sessions of each account that exists: the tenant's own, the logins of its rotations and
        its users, by name. The account for questions is left out. Empty for a tenant that doesn't exist."""

    @abstractmethod
    async def set_limits(self, tenant: Tenant, limits: EngineLimits) -> None:
        """Applies the limits to new sessions. Open sessions are not affected. The connections of users are taken from
        the limit; the tenant's own accounts share the rest, and have at least one."""

    @abstractmethod
    async def revoke_access(self, tenant: Tenant) -> None:
        """Ends all access: when it returns, no session is open, none can be opened, and no further statement of the
        tenant succeeds. Keeps data and password. Does nothing for a tenant that doesn't exist."""

    @abstractmethod
    async def restore_access(self, tenant: Tenant, *, frozen: bool = False) -> None:
        """Undoes `revoke_access`: the same credentials work again. A tenant that was revoked half created is complete
        afterwards, with all grants of a tenant, or those of a frozen one."""

    @abstractmethod
    async def freeze(self, tenant: Tenant) -> None:
        """Ends all writes except those that free space: when it returns, the tenant can read, DELETE, TRUNCATE and
        DROP, but can't write or create in any way, triggers of MySQL and MariaDB excepted: the right to drop them is
        the right to make them. Ends the open sessions once. Raises `EngineError` for a tenant that doesn't exist."""

    @abstractmethod
    async def thaw(self, tenant: Tenant) -> None:
        """Undoes `freeze`: the tenant has exactly its former rights. A tenant that isn't frozen has all grants of a
        tenant afterwards."""

    @abstractmethod
    async def reclaim(self, tenant: Tenant) -> None:
        """Returns the space of deleted rows in a frozen tenant's tables to the disk, as far as it is known. Raises
        `LoginRefused` if that needs a session of the tenant and none can be opened."""

    @abstractmethod
    async def repair(self, tenant: Tenant) -> None:
        """Restores what the tenant can take from itself: on PostgreSQL its rights on its database and the schema
        `public`, which DROP OWNED removes; on MySQL the database, which it may drop. Touches no data, and keeps what
        is revoked or frozen as it is. Raises `EngineError` when parts are missing that the tenant can't have
        removed."""

    @abstractmethod
    async def destroy(self, tenant: Tenant) -> None:
        """Removes database, role and marker, and ends their sessions. Succeeds if they are gone already. Raises
        `NameTaken`, and removes nothing, if the marker isn't this tenant's."""

    @abstractmethod
    def script_session(self, tenant: Tenant, seconds: float) -> AbstractAsyncContextManager[ScriptSession]:
        """A session of the tenant for one script, each statement of which may take `seconds`. Raises `LoginRefused`."""

    @abstractmethod
    async def end_script(self, reference: str) -> ScriptEnd:
        """Ends the session that `ScriptSession.begin` named, and returns the script's outcome."""

    async def copy_schema(self, source: Tenant, target: Tenant) -> list[str]:
        """Copies a tenant's schema, without data, into another's empty database, with sessions of both tenants. Returns
        sentences about objects that couldn't be copied: the server's message for each of the first few, and one that
        counts the others."""
        raise NotImplementedError("scripts are transactions here: nothing needs a copy")

    def dumping(
        self, tenant: Tenant, pace: Pace | None = None, *, purpose: DumpPurpose = DumpPurpose.BACKUP
    ) -> AbstractAsyncContextManager[Dump]:
        """A dump of one moment, while the tenant works; at full speed unless a `pace` is given. Works for a tenant that
        is revoked or frozen too, opens nothing for it, and runs nothing of the tenant's with more rights than the
        tenant's. However the block ends, the tool has ended then and no account or file of the dump is left; what a
        process that died left is removed by the next dump of the tenant for that purpose, by `destroy`, and by
        `end_dumps`. Raises `DumpRefused`; `HostUnavailable`."""
        raise NotImplementedError

    async def clients_at_work(self, tenant: Tenant) -> bool:
        """Whether clients other than the service have had the server do something within the last second or so. False
        while a session waits for one of this tenant's tables: it may be waiting for a dump of the tenant."""
        raise NotImplementedError

    async def load(
        self, tenant: Tenant, form: DumpFormat, chunks: AsyncIterator[bytes], *, becomes: Tenant | None = None
    ) -> None:
        """Loads a dump into the tenant's empty database with the tenant's own rights, never more, so that the tenant
        owns everything. Users get the rights that they have in the dump if it is of the same database, and otherwise
        none; `becomes` is the tenant whose database it becomes by `replace`, so that its users count. Works for a
        tenant that is revoked, and opens nothing for it. Whatever the cause, a failed or interrupted load is followed
        by `clear`. Raises `LoadRefused`; `HostFull`; `HostUnavailable`; what `chunks` raises."""
        raise NotImplementedError

    async def contents(self, tenant: Tenant) -> list[Content]:
        """What the database holds now, in the form of `Dump.contents`. Works for a revoked tenant."""
        raise NotImplementedError

    async def clear(self, tenant: Tenant) -> None:
        """Removes everything in the tenant's database, with the tenant's own rights: afterwards it is as `create` made
        it, with the same accounts and limits. May be repeated. Works for a revoked tenant, and opens nothing for
        it."""
        raise NotImplementedError

    async def replace(self, tenant: Tenant, scratch: Tenant) -> None:
        """Gives the revoked tenant the database of `scratch`, which it owns afterwards, with its own name, accounts,
        users and limits; its former database becomes that of `scratch`. May be repeated: the markers show that it is
        done. Only where `replaces_whole`."""
        raise NotImplementedError

    async def copies_at_once(self) -> bool:
        """Whether the host copies a whole database in a moment, whatever its size."""
        return False

    async def copy_database(self, source: Tenant, target: Tenant) -> Copied:
        """Copies the whole database over another tenant's on the same host, by a means of the server itself that takes
        a moment. The target, which may be revoked, owns everything afterwards. Ends the source's sessions, and its
        logins wait for `COPY_HELD_SECONDS` at most, even if this process dies. The copy is not done where the engine or
        the host has no such means, where the source has something that can't be copied this way, or where it took
        longer. Raises `EngineError`."""
        return Copied(done=False)

    async def end_dumps(self, names: Sequence[str]) -> int:
        """Removes the accounts and sessions that dumps and loads of these tenants left when their process died. Returns
        how many. The caller knows that no dump or load is under way."""
        return 0

    async def left_dumps(self, names: Sequence[str], *, remove: bool = False) -> list[str]:
        """The unused accounts that dumps and loads of these tenants left when their process died; with `remove`,
        removes them. A dump or load under way isn't touched, whatever happens at the same time. Some servers show such
        accounts only when their time is over, minutes later. Raises `EngineError`."""
        return []

    @abstractmethod
    def measuring(self, names: Sequence[str]) -> AbstractAsyncContextManager[Measuring]:
        """A measurement of these databases, in parts that the caller chooses. What the server reports only for all
        together is read here, within `SURVEY_SECONDS`."""

    async def measure(self, names: Sequence[str]) -> dict[str, Usage]:
        """Storage and open sessions of these databases, measured together. Missing ones are left out."""
        async with self.measuring(names) as measuring:
            return await measuring.usage(names, MEASURE_SECONDS)

    @abstractmethod
    async def sessions(self, names: Sequence[str]) -> dict[str, frozenset[str]]:
        """The open sessions of these tenants and of their helper accounts, by ids that are never reused. Tenants
        without a session are left out."""

    @abstractmethod
    async def counters(self, names: Sequence[str]) -> dict[str, Counters]:
        """What the server has counted for these databases, all of them in one look, within `COUNT_SECONDS`; databases
        that it says nothing about are left out. The counters are read from the server's memory: no database is opened,
        and none wakes. Raises `EngineError`."""

    @abstractmethod
    async def end_excessive_sessions(self, names: Sequence[str], limits: SessionLimits) -> list[SessionsEnded]:
        """Ends sessions of these tenants that exceed their share of the server's resources, a few hundred at most,
        and returns one entry for each. Works even when such a resource is exhausted."""

    @abstractmethod
    async def session_counts(self) -> SessionCounts:
        """The sessions that are open now, counted through a connection that stays open: this works even when the server
        admits nobody."""

    @abstractmethod
    async def hold(self, name: str, limits: HeldLimits) -> None:
        """Lets a tenant have no more than `limits.at_most` sessions, shared among its accounts in proportion to their
        limits, or gives it its whole limit again. Open sessions go on. Does nothing for a tenant that doesn't exist,
        and opens nothing that was closed. May be repeated; works when the server admits nobody."""

    @abstractmethod
    async def held(self) -> list[str]:
        """The names of the tenants that `hold` has given less than their limit on the engine."""

    @abstractmethod
    async def end_surplus(self, name: str, keep: int) -> int:
        """Ends all sessions of a tenant's accounts but `keep`, first those that have been idle longest. The service's
        own sessions in its database don't count. Returns how many it ended."""

    @abstractmethod
    async def shared_resources(self) -> list[SharedResource]:
        """The current use of the resources that all tenants share."""

    @abstractmethod
    async def list_tenants(self) -> list[FoundTenant]:
        """Everything on this host with one of our markers, complete or not."""

    @abstractmethod
    async def make_reader(self, tenant: Tenant, password: str) -> None:
        """Creates the tenant's SELECT-only account, or corrects its rights and sets this password. It is closed,
        opened and removed together with the tenant's own account. Raises `LoginRefused` for a tenant whose access
        was ended."""

    @abstractmethod
    def reading(self, tenant: Tenant, password: str, limits: QueryLimits) -> AbstractAsyncContextManager[ReadSession]:
        """A new session of the SELECT-only account, closed after the block. Raises `LoginRefused`."""

    @abstractmethod
    def writing(self, tenant: Tenant, limits: QueryLimits) -> AbstractAsyncContextManager[WriteSession]:
        """A new session of the tenant's own account, closed after the block. Raises `LoginRefused`."""

    async def end_overdue(self, seconds: float) -> int:
        """Ends statements of questions that have run longer than `seconds` because the process that ran them has
        died. Returns how many. Does nothing on an engine that enforces statement timeouts itself."""
        return 0
