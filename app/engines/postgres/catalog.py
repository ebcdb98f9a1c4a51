"""What the system catalogs say about tenants, and whether it is ours."""

from collections.abc import Sequence
from typing import Any

import msgspec

from app.engines.base import EngineError, FoundTenant, NameTaken, Tenant
from app.engines.naming import (
    HELPER_SEPARATOR,
    INSTALLATION_SEPARATOR,
    LOGIN_PURPOSE,
    MARKER_PREFIX,
    USER_PURPOSE,
)
from app.engines.postgres.guard import IS_GUARDED

ACCOUNT_KIND = f"""
CASE WHEN {{1}} = {{0}} THEN 'own'
     WHEN starts_with({{1}}, {{0}} || '{HELPER_SEPARATOR}{LOGIN_PURPOSE}') THEN 'login'
     WHEN starts_with({{1}}, {{0}} || '{HELPER_SEPARATOR}{USER_PURPOSE}') THEN 'user' END
"""
"""The kind of a tenant's account, from the tenant's name and the role's; null for other roles."""


class TenantObjects(msgspec.Struct, frozen=True, kw_only=True):
    """The objects under a tenant's name.

    `can_login`: its own role or the login of a rotation may log in. `invalid`: a crash during DROP DATABASE left it,
    and only another drop works on it. `open`: it accepts connections. `owned`: its owner is our administrator.
    `connections`: the database's own limit. `temp_limit`: the administrator may set `temp_file_limit`. `guarded`: the
    server has the template of `guard.sql`.

    `helpers` are all its other roles. Among them are the `logins` of rotations and the `users`; `readers` are the users
    that only read. `retired` are those of them that never log in again, and its own role after a rotation: their
    connection limit is 0, which only we can set. `user_connections` is how many of the connections the users have.
    """

    role: bool
    role_marker: str | None
    can_login: bool
    database: bool
    database_marker: str | None
    invalid: bool
    open: bool
    owned: bool
    connections: int
    temp_limit: bool
    guarded: bool
    helpers: tuple[str, ...]
    logins: tuple[str, ...]
    users: tuple[str, ...]
    readers: tuple[str, ...]
    retired: tuple[str, ...]
    user_connections: int

    @property
    def revoked(self) -> bool:
        return self.role and not self.can_login

    def roles(self, tenant: Tenant) -> list[str]:
        """The existing roles: its own first, then its helpers."""
        return [*([tenant.name] if self.role else []), *self.helpers]

    def admitted(self, tenant: Tenant) -> list[str]:
        """The roles that may log in unless the tenant's access was ended."""
        return [role for role in self.roles(tenant) if role not in self.retired]

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
        """As `check`, and raises `EngineError` when the role or the database is missing."""
        self.check(tenant)
        if not (self.role and self.database) or self.invalid:
            raise EngineError(f"{tenant.name} is not on this host, or only in part")
        return self


# In the order of the index: from the name to the last that begins with it and the separator.
_FIND = f"""
WITH found AS (
    SELECT oid, rolname::text AS name, rolcanlogin, rolconnlimit,
           {ACCOUNT_KIND.format("$1::name", "rolname")} AS kind
    FROM pg_roles WHERE rolname >= $1::name AND rolname < ($1::name || '`')::name
), accounts AS (
    SELECT * FROM found WHERE kind IS NOT NULL
)
SELECT r.oid IS NOT NULL AS role, split_part(shobj_description(r.oid, 'pg_authid'), $3, 1) AS role_marker,
       EXISTS (SELECT FROM accounts WHERE kind <> 'user' AND rolcanlogin) AS can_login,
       d.oid IS NOT NULL AS database, split_part(shobj_description(d.oid, 'pg_database'), $3, 1) AS database_marker,
       coalesce(d.datconnlimit = -2, false) AS invalid,
       coalesce(d.datallowconn AND d.datconnlimit <> -2, false) AS open,
       coalesce(pg_get_userbyid(d.datdba) = current_user, false) AS owned,
       coalesce(d.datconnlimit, -1) AS connections,
       has_parameter_privilege('temp_file_limit', 'SET') AS temp_limit,
       {IS_GUARDED} AS guarded,
       ARRAY(SELECT name FROM found WHERE starts_with(name, $1::name || $2) ORDER BY 1) AS helpers,
       ARRAY(SELECT name FROM accounts WHERE kind = 'login' ORDER BY 1) AS logins,
       ARRAY(SELECT name FROM accounts WHERE kind = 'user' ORDER BY 1) AS users,
       ARRAY(SELECT name FROM accounts a WHERE kind = 'user' AND EXISTS (
                 SELECT FROM pg_auth_members m WHERE m.member = a.oid AND m.roleid = r.oid AND NOT m.set_option
             ) ORDER BY 1) AS readers,
       ARRAY(SELECT name FROM accounts WHERE rolconnlimit = 0 ORDER BY 1) AS retired,
       (SELECT coalesce(sum(rolconnlimit), 0)::int FROM accounts WHERE kind = 'user' AND rolconnlimit > 0)
           AS user_connections
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
_OPEN_SESSIONS = f"""
SELECT r.rolname::text AS name, count(a.pid) AS sessions
FROM pg_roles r LEFT JOIN pg_stat_activity a ON a.usesysid = r.oid
WHERE {ACCOUNT_KIND.format("$1::name", "r.rolname")} IS NOT NULL
GROUP BY r.rolname, r.rolconnlimit HAVING r.rolconnlimit <> 0 OR count(a.pid) > 0
"""  # noqa: S608  constants
_LIST = """
WITH roles AS (
    SELECT oid, rolname::text AS name, shobj_description(oid, 'pg_authid') AS marker, rolcanlogin FROM pg_roles
), databases AS (
    SELECT oid, datname::text AS name, shobj_description(oid, 'pg_database') AS marker, datallowconn,
           pg_get_userbyid(datdba) = current_user AS owned FROM pg_database
), marked_roles AS (
    SELECT * FROM roles WHERE starts_with(marker, $1)
), logins AS (
    SELECT DISTINCT split_part(name, $3, 1) AS name FROM roles
    WHERE rolcanlogin AND starts_with(split_part(name, $3, 2), $4)
)
SELECT coalesce(r.name, d.name) AS name, split_part(coalesce(r.marker, d.marker), $2, 1) AS marker,
       split_part(coalesce(r.marker, d.marker), $2, 2) AS installation,
       d.name IS NOT NULL AS has_database, r.name IS NOT NULL AS has_role,
       coalesce(d.datallowconn AND (r.rolcanlogin OR l.name IS NOT NULL), false) AS admits,
       coalesce(has_database_privilege(r.oid, d.oid, 'CONNECT'), false) AS may_connect,
       coalesce(has_database_privilege(r.oid, d.oid, 'CREATE'), false) AS may_create,
       -- Every database shows its owners here, so that none has to be entered.
       EXISTS (SELECT FROM pg_shdepend s WHERE s.refclassid = 'pg_authid'::regclass AND s.refobjid = r.oid
               AND s.dbid = d.oid AND s.classid = 'pg_namespace'::regclass AND s.deptype = 'o') AS has_schema
FROM marked_roles r
FULL JOIN databases d ON d.name = r.name
    AND (split_part(d.marker, $2, 1) = split_part(r.marker, $2, 1) OR d.marker IS NULL AND d.owned)
LEFT JOIN logins l ON l.name = r.name
WHERE r.name IS NOT NULL OR starts_with(d.marker, $1)
ORDER BY name
"""


async def sessions(connection: Any, names: Sequence[str]) -> dict[str, frozenset[str]]:
    rows = await connection.fetch(_SESSIONS, list(names), HELPER_SEPARATOR)
    return {row["name"]: frozenset(row["ids"]) for row in rows}


async def open_sessions(connection: Any, name: str) -> dict[str, int]:
    """The number of open sessions of the tenant's own role, of each login and of each user, even if it is 0; of retired
    ones only if they have a session."""
    rows = await connection.fetch(_OPEN_SESSIONS, name)
    return {row["name"]: row["sessions"] for row in rows}


async def list_marked(connection: Any) -> list[FoundTenant]:
    rows = await connection.fetch(_LIST, MARKER_PREFIX, INSTALLATION_SEPARATOR, HELPER_SEPARATOR, LOGIN_PURPOSE)
    return [msgspec.convert(dict(row), FoundTenant) for row in rows]
