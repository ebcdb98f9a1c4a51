"""What an adapter is told about a tenant and its accounts, and what it reports about them."""

from enum import StrEnum

import msgspec


class Tenant(msgspec.Struct, frozen=True, kw_only=True):
    """A tenant on a host.

    `name` is the name of database and role, matching `^[a-z][a-z0-9]{0,31}$`. `marker` is stored on the engine beside
    them, so that an object of that name can be recognised as ours. `login` is the account that it logs in as, whose
    password is `password`; empty if that is `name`.
    """

    name: str
    password: str
    marker: str
    login: str = ""

    def __repr__(self) -> str:
        return f"Tenant({self.name})"


class Access(StrEnum):
    """What an account of a tenant may do: everything that the tenant may, or only read."""

    READ_ONLY = "read_only"
    READ_WRITE = "read_write"


class Login(msgspec.Struct, frozen=True, kw_only=True):
    """An account of a tenant besides, or instead of, its first.

    `name` is `<tenant name>_l<number>` for a login of a rotation, `<tenant name>_u<number>` for a user, and the
    tenant's own name for its first account. `connections` is the limit of its open sessions, taken from the
    database's; None means no other limit than the database's.
    """

    name: str
    password: str
    access: Access
    connections: int | None

    def __repr__(self) -> str:
        return f"Login({self.name})"


class EngineLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits that the engine itself enforces. `connections` is at least 1, else `ValueError`: 0 means none on one
    engine and no limit on the other."""

    connections: int

    def __post_init__(self) -> None:
        if self.connections < 1:
            raise ValueError("a connection limit is at least 1")


class HeldLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The connections of a tenant while its host is short of them."""

    total: int
    """The tenant's limit, as `EngineLimits.connections`."""
    users: dict[str, int]
    """How many of these connections its users have, by the names of their accounts."""
    at_most: int | None
    """How many connections the tenant gets for now; None for its whole limit."""

    def of_user(self, name: str) -> int | None:
        """How many connections a user gets for now; None for an account that isn't among the users."""
        return self._scaled(self.users[name]) if name in self.users else None

    @property
    def own(self) -> int:
        """How many connections the tenant's own accounts get together for now."""
        return self._scaled(max(1, self.total - sum(self.users.values())))

    def _scaled(self, connections: int) -> int:
        """Scales connections in proportion, to at least one: an account without any could not be distinguished from a
        retired one."""
        if self.at_most is None or self.at_most >= self.total:
            return connections
        return max(1, connections * self.at_most // self.total)


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """The measured use of a tenant database."""

    storage_bytes: int
    connections: int
    rebuilding: bool = False
    """One of its tables is being rebuilt, and both the old and the new one count in `storage_bytes`."""


class Counters(msgspec.Struct, frozen=True, kw_only=True):
    """What a server has counted for one database since its counters began; None for each thing that it doesn't count.
    They are only the server's word: two readings are compared only where `began` is the same, and no number of
    `witness` or of the counters has become less."""

    began: str
    """The beginning from which the server counts: another text means that the counters began anew, as after a restart
    of the server, a reset of its statistics, or when another database took the name."""
    witness: tuple[int, ...] = ()
    """What the server has counted for the administrator. After a reset that the server doesn't report, these numbers
    became less too."""
    transactions: int | None = None
    """Committed and rolled back."""
    rows_read: int | None = None
    """Rows that statements looked at, whether or not a client got them."""
    rows_written: int | None = None
    """Inserted, updated and deleted."""
    cache_hits: int | None = None
    """Pages that were in the server's memory when they were needed."""
    cache_reads: int | None = None
    """Pages that were not."""


def counted(value: object) -> int | None:
    """A counter as a server reports it; None for what can't be one."""
    try:
        number = int(str(value))
    except ValueError:
        return None
    return number if 0 <= number < 2**62 else None


class FoundTenant(msgspec.Struct, frozen=True, kw_only=True):
    """A database or role on a host with one of our markers."""

    name: str
    marker: str
    installation: str
    """The id of the installation that wrote the marker; empty if the marker has none."""
    has_database: bool
    has_role: bool
    admits: bool
    """Logins are possible: access was not ended."""
    may_connect: bool
    """Its role has the right to connect to its database."""
    may_create: bool
    """Its role has the right to create in its database; a frozen one doesn't. On MySQL this is read from our own
    table on the host."""
    has_schema: bool
    """It owns a schema in its database. On MySQL schema and database are the same."""
