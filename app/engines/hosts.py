"""What an adapter is told about its host, and what it reports about it."""

import msgspec

from app.engines.tls import TlsPolicy

_UNSAID = TlsPolicy()
OWN_SESSIONS = 50
"""How many sessions of a server are left to the service; on a small server it is a tenth of them."""


class AdminAddress(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The service's own access to a host. Tenants use the host's public address instead.

    `tls` applies to every connection of the service to the host, those as a tenant included.
    """

    host: str
    port: int
    user: str
    password: str
    database: str | None = None
    tls: TlsPolicy = _UNSAID

    def sealable(self) -> bytes:
        """The part that is stored sealed. `tls` is no secret, and operators read and change it."""
        return msgspec.json.encode(msgspec.structs.replace(self, tls=_UNSAID))

    def __repr__(self) -> str:
        return f"AdminAddress({self.user}@{self.host}:{self.port})"


class HostFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about a host. `shortcomings` are sentences for the operator: what this host lacks, and what that means
    for its tenants."""

    flavour: str
    """`postgres`, `mysql` or `mariadb`."""
    version: str
    """As the server reports it, such as `18.6` or `10.11.19-MariaDB`."""
    max_connections: int
    """The sessions for all tenants together: the server's limit without those reserved for administrators, and without
    those that the service needs."""
    shortcomings: tuple[str, ...] = ()


def sessions_for_tenants(limit: int) -> int:
    """How many of the sessions that a server admits are for tenants: all but some for the service's own logins, such as
    those as a tenant, for which no server keeps room."""
    return limit - min(OWN_SESSIONS, limit // 10)


class SessionCounts(msgspec.Struct, frozen=True, kw_only=True):
    """The open sessions of a server, without the administrator's."""

    limit: int
    """How many sessions the server admits."""
    by_name: dict[str, int]
    """The number of open sessions: of each tenant by its name, all of its accounts together; of others by their
    names."""

    @property
    def open(self) -> int:
        return sum(self.by_name.values())


class SessionLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much of the server's shared resources one session of a tenant may use. A session that exceeds it is ended."""

    idle_transaction_seconds: float = 3600
    """How long an open transaction may be idle."""
    transaction_seconds: float = 86_400
    """How long a transaction may be open, or prepared."""
    memory_bytes: int = 2**30
    """The memory that it may use, if the server reports it."""
    shared_percent: int = 50
    """A share of the server's locks, and of its prepared statements. When this much is in use, the sessions that hold
    the most are ended."""


class SessionsEnded(msgspec.Struct, frozen=True, kw_only=True):
    tenant: str
    reason: str
    """`idle_transaction`, `long_transaction`, `prepared_transaction`, `locks`, `memory` or `prepared_statements`."""


class SharedResource(msgspec.Struct, frozen=True, kw_only=True):
    """A resource that all tenants of a server share."""

    name: str
    """A name in Prometheus' style, such as `transaction_ids`."""
    used: float
    capacity: float | None
    """The server's limit; None if it reports none."""
    concern: str | None = None
    """A problem that needs an operator, whatever the use."""
