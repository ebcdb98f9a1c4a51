"""What the system catalogs say about tenants, and whether it is ours."""

from collections.abc import Sequence
from typing import Any

import msgspec

from app.engines.base import EngineError, FoundTenant, NameTaken, Tenant
from app.engines.naming import HELPER_SEPARATOR, INSTALLATION_SEPARATOR, MARKER_PREFIX
from app.engines.postgres.guard import IS_GUARDED


class TenantObjects(msgspec.Struct, frozen=True, kw_only=True):
    """The objects under a tenant's name.

    `invalid`: a crash during DROP DATABASE left it, and only another drop works on it. `open`: it accepts connections.
    `owned`: its owner is our administrator. `temp_limit`: the administrator may set `temp_file_limit`. `guarded`: the
    server has the template of `guard.sql`.
    """

    role: bool
    role_marker: str | None
    can_login: bool
    database: bool
    database_marker: str | None
    invalid: bool
    open: bool
    owned: bool
    temp_limit: bool
    guarded: bool
    helpers: tuple[str, ...]

    @property
    def revoked(self) -> bool:
        return self.role and not self.can_login

    def roles(self, tenant: Tenant) -> list[str]:
        """The existing roles: its own first, then its helpers."""
        return [*([tenant.name] if self.role else []), *self.helpers]

    def check(self, tenant: Tenant) -> "TenantObjects":
        """Raises `NameTaken` for a role or database that isn't this tenant's.

        A database without a comment is ours if our role exists and our administrator owns the database: CREATE DATABASE
        can't share a transaction with COMMENT, so a crash may fall between the two.
        """
        if self.role and self.role_marker != tenant.marker:
            raise NameTaken(f"the role {tenant.name} is not ours")
        unmarked_ours = self.database_marker is None and self.role and self.owned
        if self.database and self.database_marker != tenant.marker and not unmarked_ours:
            raise NameTaken(f"the database {tenant.name} is not ours")
        return self

    def require(self, tenant: Tenant) -> "TenantObjects":
        """Raises `EngineError` too when role or database is missing."""
        self.check(tenant)
        if not (self.role and self.database) or self.invalid:
            raise EngineError(f"{tenant.name} is not on this host, or only in part")
        return self


_FIND = f"""
SELECT r.oid IS NOT NULL AS role, split_part(shobj_description(r.oid, 'pg_authid'), $3, 1) AS role_marker,
       coalesce(r.rolcanlogin, false) AS can_login,
       d.oid IS NOT NULL AS database, split_part(shobj_description(d.oid, 'pg_database'), $3, 1) AS database_marker,
       coalesce(d.datconnlimit = -2, false) AS invalid,
       coalesce(d.datallowconn AND d.datconnlimit <> -2, false) AS open,
       coalesce(pg_get_userbyid(d.datdba) = current_user, false) AS owned,
       has_parameter_privilege('temp_file_limit', 'SET') AS temp_limit,
       {IS_GUARDED} AS guarded,
       ARRAY(SELECT rolname::text FROM pg_roles WHERE starts_with(rolname, $1 || $2) ORDER BY 1) AS helpers
FROM (SELECT $1::name AS name) n
LEFT JOIN pg_roles r ON r.rolname = n.name
LEFT JOIN pg_database d ON d.datname = n.name
"""  # noqa: S608  constants


async def find(connection: Any, name: str) -> TenantObjects:
    row = await connection.fetchrow(_FIND, name, HELPER_SEPARATOR, INSTALLATION_SEPARATOR)
    return msgspec.convert(dict(row), TenantObjects)


_SESSIONS = """
SELECT split_part(usename, $2, 1) AS name, array_agg(pid || '/' || extract(epoch FROM backend_start)) AS ids
FROM pg_stat_activity WHERE split_part(usename, $2, 1) = ANY($1::text[]) GROUP BY 1
"""
_LIST = """
WITH roles AS (
    SELECT oid, rolname::text AS name, shobj_description(oid, 'pg_authid') AS marker, rolcanlogin FROM pg_roles
), databases AS (
    SELECT oid, datname::text AS name, shobj_description(oid, 'pg_database') AS marker, datallowconn,
           pg_get_userbyid(datdba) = current_user AS owned FROM pg_database
), marked_roles AS (
    SELECT * FROM roles WHERE starts_with(marker, $1)
)
SELECT coalesce(r.name, d.name) AS name, split_part(coalesce(r.marker, d.marker), $2, 1) AS marker,
       split_part(coalesce(r.marker, d.marker), $2, 2) AS installation,
       d.name IS NOT NULL AS has_database, r.name IS NOT NULL AS has_role,
       coalesce(r.rolcanlogin AND d.datallowconn, false) AS admits,
       coalesce(has_database_privilege(r.oid, d.oid, 'CONNECT'), false) AS may_connect,
       coalesce(has_database_privilege(r.oid, d.oid, 'CREATE'), false) AS may_create,
       -- Every database shows its owners here, so that none has to be entered.
       EXISTS (SELECT FROM pg_shdepend s WHERE s.refclassid = 'pg_authid'::regclass AND s.refobjid = r.oid
               AND s.dbid = d.oid AND s.classid = 'pg_namespace'::regclass AND s.deptype = 'o') AS has_schema
FROM marked_roles r
FULL JOIN databases d ON d.name = r.name
    AND (split_part(d.marker, $2, 1) = split_part(r.marker, $2, 1) OR d.marker IS NULL AND d.owned)
WHERE r.name IS NOT NULL OR starts_with(d.marker, $1)
ORDER BY name
"""


async def sessions(connection: Any, names: Sequence[str]) -> dict[str, frozenset[str]]:
    rows = await connection.fetch(_SESSIONS, list(names), HELPER_SEPARATOR)
    return {row["name"]: frozenset(row["ids"]) for row in rows}


async def list_marked(connection: Any) -> list[FoundTenant]:
    rows = await connection.fetch(_LIST, MARKER_PREFIX, INSTALLATION_SEPARATOR)
    return [msgspec.convert(dict(row), FoundTenant) for row in rows]
