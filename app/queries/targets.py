"""The database that a question is about, and all that answering it needs, in one query."""

from uuid import UUID

import msgspec

from app.audit.drafts import found, note
from app.auth.principal import Principal
from app.contracts.base import DatabaseStatus, Engine
from app.core.errors import DatabaseNotActive, require_found
from app.core.ids import marker
from app.core.secrets import SecretBox, SecretLocation
from app.databases.passwords import password_place
from app.engines.base import Tenant
from app.engines.tls import TlsMode
from app.hosts.adapters import HostAccess
from app.store.sealed import SealedColumn
from app.store.session import execute, fetch_one


class QueryTarget(msgspec.Struct, frozen=True, kw_only=True):
    """`tier` and `queries` are its team's."""

    id: int
    uuid: UUID
    team_id: int
    engine: Engine
    status: DatabaseStatus
    host_id: int
    host_address: str
    host_port: int
    admin_sealed: bytes
    tls: TlsMode
    tls_ca: str | None
    installation: UUID
    engine_name: str
    login: str
    password_sealed: bytes | None
    reader_sealed: bytes | None
    tier: str
    queries: str

    def tenant(self, box: SecretBox) -> Tenant:
        assert self.password_sealed is not None, "a database that is not deleted has a password"
        password = box.open(self.password_sealed, password_place(self.uuid))
        return Tenant(name=self.engine_name, login=self.login, password=password, marker=marker(self.uuid))

    @property
    def host(self) -> HostAccess:
        return HostAccess(
            id=self.host_id,
            engine=self.engine,
            host=self.host_address,
            port=self.host_port,
            admin_sealed=self.admin_sealed,
            tls=self.tls,
            tls_ca=self.tls_ca,
            installation=self.installation,
        )

    def reader_password(self, box: SecretBox) -> str | None:
        """None before the first question."""
        return box.open(self.reader_sealed, reader_place(self.uuid)) if self.reader_sealed else None


_FIND = """
SELECT d.id, d.uuid, d.team_id, d.engine, d.status, d.host_id, d.engine_name,
       coalesce(d.login_name, d.engine_name) AS login, d.password_sealed, r.password_sealed AS reader_sealed,
       t.tier, t.queries, h.host AS host_address, h.port AS host_port, h.admin_sealed, h.tls, h.tls_ca,
       (SELECT id FROM installation) AS installation
FROM databases d JOIN teams t ON t.id = d.team_id JOIN engine_hosts h ON h.id = d.host_id
     LEFT JOIN query_readers r ON r.database_id = d.id
WHERE d.uuid = $1 AND d.team_id = any($2::bigint[]) AND d.status <> 'deleted'
"""


async def find(principal: Principal, database: UUID) -> QueryTarget:
    """Raises `NotFound`, `InsufficientRole`, `NotAMember` or `DatabaseNotActive`."""
    principal.check_reach(database, "database")
    note(subject=("database", database))
    target = found(await fetch_one(QueryTarget, _FIND, database, [*principal.readable_teams, *principal.ended_teams]))
    if target is not None and target.team_id not in principal.team_ids:
        raise principal.refusal(target.team_id)
    target = require_found(target, "database")
    if target.status is not DatabaseStatus.ACTIVE:
        raise DatabaseNotActive(target.status.value)
    return target


async def delete_reader(database: UUID) -> None:
    """Deletes the password of the database's SELECT-only account, once the database is deleted."""
    await execute(
        """
        DELETE FROM query_readers r USING databases d
        WHERE d.id = r.database_id AND d.uuid = $1 AND d.status = 'deleted'
        """,
        database,
    )


def reader_place(database: UUID) -> SecretLocation:
    """Where the password of a database's SELECT-only account lies sealed."""
    return SecretLocation("query_readers", "password_sealed", str(database))


SEALED_READER = SealedColumn(
    table="query_readers",
    column="password_sealed",
    row="(SELECT d.uuid::text FROM databases d WHERE d.id = s.database_id)",
)
