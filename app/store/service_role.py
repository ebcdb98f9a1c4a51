"""The role with which the service logs in to our own database: it is no owner of the tables, and no administrator.

Owners of tables may change them, disable their triggers, and give themselves any right on their rows. So a service
that logged in as the owner could rewrite whatever is meant to stay, and so could whoever takes it over.
"""

from urllib.parse import parse_qs, unquote, urlsplit

import asyncpg

from app.core.scram import verifier
from app.store.migrate import MigrationFailed, lock_migrations, migrate, require_current
from app.store.rights import READ_ONLY, RULES, TableRules, give_rights
from app.store.servers import connect_to_store
from app.store.session import connected, execute, fetch_exists, fetch_scalar, fetch_values, long_transaction

_CONNECT_SECONDS = 10.0
_ATTRIBUTES = "LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS"
_NO_SUCH_LOGIN = (asyncpg.InvalidPasswordError, asyncpg.InvalidAuthorizationSpecificationError)

_TOO_MUCH = """
WITH service AS (SELECT * FROM pg_roles WHERE rolname = coalesce($1, current_user)),
became AS (
    SELECT r.*, r.oid = s.oid AS itself FROM pg_roles r, service s
    WHERE r.oid = s.oid OR NOT s.rolsuper AND pg_has_role(s.oid, r.oid, 'MEMBER')
),
named AS (
    SELECT b.*, CASE WHEN itself THEN '' ELSE 'may become ' || rolname || ', which ' END AS prefix FROM became b
),
here AS (
    SELECT c.oid, c.relname, c.relowner, coalesce(r.relname, c.relname) AS whole FROM pg_class c
    LEFT JOIN pg_class r ON c.relispartition AND r.oid = pg_partition_root(c.oid)
    WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')
)
SELECT reason FROM (
    SELECT 1 AS place, prefix || 'is a superuser' AS reason FROM named WHERE rolsuper
    UNION ALL
    SELECT 2, prefix || 'may ' || concat_ws(', ',
        CASE WHEN rolcreaterole THEN 'make roles' END, CASE WHEN rolcreatedb THEN 'make databases' END,
        CASE WHEN rolreplication THEN 'replicate' END, CASE WHEN rolbypassrls THEN 'bypass row level security' END)
    FROM named WHERE NOT rolsuper AND (rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls)
    UNION ALL
    SELECT 3, 'may become ' || rolname FROM named
    WHERE NOT itself AND rolname IN ('pg_write_all_data', 'pg_maintain', 'pg_execute_server_program',
        'pg_read_server_files', 'pg_write_server_files', 'pg_create_subscription')
    UNION ALL
    SELECT 4, prefix || 'owns ' || count(*) || ' tables, ' || min(h.relname) || ' among them'
    FROM named n JOIN here h ON h.relowner = n.oid GROUP BY n.oid, prefix
    UNION ALL
    SELECT 5, prefix || 'owns the database' FROM named n JOIN pg_database d ON d.datdba = n.oid
    WHERE d.datname = current_database()
    UNION ALL
    SELECT 6, 'may create in the schema ' || current_schema() FROM service
    WHERE NOT rolsuper AND has_schema_privilege(oid, current_schema()::regnamespace, 'CREATE')
    UNION ALL
    SELECT 7, 'may ' || string_agg(lower(p.privilege), ', ' ORDER BY p.privilege) || ' rows of ' || h.relname
    FROM service s, here h, unnest(ARRAY['INSERT', 'UPDATE', 'DELETE', 'TRUNCATE']) AS p (privilege)
    WHERE NOT s.rolsuper AND h.relowner <> s.oid AND (
        p.privilege = 'TRUNCATE'
        OR h.whole = ANY ($2::text[]) AND p.privilege <> 'INSERT' OR h.whole = ANY ($3::text[])
    ) AND has_table_privilege(s.oid, h.oid, p.privilege)
    GROUP BY h.relname
    UNION ALL
    SELECT 8, 'may make triggers on ' || min(h.relname) || ' and ' || count(*) - 1 || ' other tables'
    FROM service s, here h
    WHERE NOT s.rolsuper AND h.relowner <> s.oid AND has_table_privilege(s.oid, h.oid, 'TRIGGER')
    HAVING count(*) > 0
) found ORDER BY place, reason
"""


async def powers_beyond_need(role: str | None = None, rules: TableRules = RULES) -> list[str]:
    """What the role may do and the service never needs, each in a few words; nothing for a role as it should be.
    `role` is the current one unless given."""
    return await fetch_values(str, _TOO_MUCH, role, list(rules.insert_only), list(READ_ONLY))


async def current_role() -> str:
    return await fetch_scalar(str, "SELECT current_user::text")


async def prepare(admin_dsn: str, dsn: str) -> None:
    """Brings our own database to this version as its administrator, and makes the role that `dsn` names, with its
    password and the rights that the service needs. It may run at any time, and any number of times.

    Raises `MigrationFailed`: nothing has changed then, or the message says what is to be done by hand.
    """
    role, password = _login(dsn)
    known = await _may_log_in(dsn)
    async with connected(admin_dsn, max_size=2):
        await migrate()
        async with long_transaction():
            await lock_migrations()
            await _make(role, None if known else password)
            await give_rights(role)
            if beyond := await powers_beyond_need(role):
                raise MigrationFailed(
                    f"the role {role} of HEADWATER_CONTROL_DSN has more power than the service should have: it"
                    f" {'; it '.join(beyond)}. Give HEADWATER_CONTROL_DSN a name that no role has yet; it is made then"
                )
    async with connected(dsn, max_size=1):
        await require_current()


def _login(dsn: str) -> tuple[str, str | None]:
    parts = urlsplit(dsn)
    given = parse_qs(parts.query)
    role = unquote(parts.username or "") or given.get("user", [""])[0]
    password = unquote(parts.password or "") or given.get("password", [""])[0]
    if not role:
        raise MigrationFailed("HEADWATER_CONTROL_DSN names no user")
    if not password.isascii():
        raise MigrationFailed("the password in HEADWATER_CONTROL_DSN has to be of ASCII characters")
    return role, password or None


async def _may_log_in(dsn: str) -> bool:
    try:
        connection = await connect_to_store(dsn, timeout=_CONNECT_SECONDS)
    except _NO_SUCH_LOGIN:
        return False
    except asyncpg.InsufficientPrivilegeError:  # to enter this database, which it will get
        return True
    await connection.close()
    return True


async def _make(role: str, password: str | None) -> None:
    """Makes the role where there is none, and sets the password where one is given. What else the role may do is left
    as it is, for whoever made it to decide."""
    name = await fetch_scalar(str, "SELECT quote_ident($1)", role)
    there = await fetch_exists("SELECT FROM pg_roles WHERE rolname = $1", role)
    changes = [] if there else [f"CREATE ROLE {name} {_ATTRIBUTES}"]
    if password is not None:
        # A verifier has no character that SQL would read otherwise.
        changes.append(f"ALTER ROLE {name} PASSWORD '{verifier(password)}'")
    try:
        for change in changes:
            await execute(change)
    except asyncpg.InsufficientPrivilegeError:
        raise MigrationFailed(
            f"the role {role} of HEADWATER_CONTROL_DSN can't log in, and the one of HEADWATER_CONTROL_ADMIN_DSN may"
            f" not change that. An administrator of the server does: CREATE ROLE {name} {_ATTRIBUTES} PASSWORD '…'"
        ) from None
