"""All differences between MySQL and MariaDB."""

import hashlib
from collections.abc import Callable

import msgspec

from app.engines.naming import literal

TENANT_PRIVILEGES = (
    "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, REFERENCES, INDEX, ALTER, CREATE TEMPORARY TABLES, "
    "LOCK TABLES, EXECUTE, CREATE VIEW, SHOW VIEW, CREATE ROUTINE, ALTER ROUTINE, TRIGGER"
)
"""All privileges of a tenant on its own database. No EVENT: events would go on after the account is locked."""
FROZEN_PRIVILEGES = "SELECT, DELETE, DROP, LOCK TABLES, EXECUTE, SHOW VIEW, ALTER ROUTINE, TRIGGER"
"""The privileges of a frozen tenant. DROP is also needed for TRUNCATE, and drops views; ALTER ROUTINE drops routines.
TRIGGER drops triggers and can't be had without the right to make them: a trigger that a frozen tenant makes does no
more than the tenant may, and its text counts as storage, so that a tenant that goes on making them is paused."""
READ_ONLY_PRIVILEGES = "SELECT, SHOW VIEW"
"""The privileges of an account that only reads."""
TENANT_PATTERN = "t%"
"""The databases that the service's administrator can access: `app.core.ids.engine_name` begins every name with `t`.
On `*.*` it could write the system's own tables, and so make itself root."""
BOOKKEEPING = "headwater"


class Flavour(msgspec.Struct, frozen=True, kw_only=True):
    """What the adapter does differently for one of the two."""

    name: str
    oldest: tuple[int, ...]
    global_privileges: tuple[str, ...]
    more_grants: tuple[str, ...]
    """Reads that only this flavour's administrator needs, as `<privilege> ON <table>`."""
    identified: Callable[[str], str]
    """The clause that sets a password."""
    overlapping: Callable[[str, str], tuple[str, ...]]
    """The clauses of one ALTER USER, in their order. Afterwards an old and a new password work, whatever worked before,
    also if an earlier run has set both already."""
    dropping_second: tuple[str, ...]
    """The clauses that drop the second password, after `identified` has set the one that stays."""
    sizes: str
    """A query for the bytes on disk of InnoDB's tables, and the number of those that a rebuild is writing, as rows
    `(database, bytes, rebuilds)`, for `%s` names."""
    shares_files: bool
    """Whether a tenant can put tables into files that it shares with others."""
    temporary: str | None
    """A query for the bytes of temporary tables on disk, as rows `(tenant, bytes)`, for `%s` names; None if the
    server doesn't report them."""
    definitions: tuple[str, ...]
    """A query for the bytes of definitions: bodies of routines, views and triggers, and columns' comments and
    defaults, as rows `(database, bytes)`, for `%s` names."""
    time_limit: Callable[[float], str]
    """The session's time limit for reads in seconds, as a `SET` clause; 0 for none."""
    session_memory: str
    """A query for the memory of sessions in bytes, as rows `(session, tenant, bytes)`, for `%s` names, those above
    `%s`."""
    named_locks: str | None
    """The same for the memory of their named locks (`GET_LOCK`); None where nobody can take many."""
    prepared_statements: str
    """A query for the sessions that probably hold the most prepared statements, as rows `(session, tenant)`, for
    `%s` names."""
    started: str
    """A query for the second in which the server started, by its own clock."""
    counters: tuple[tuple[tuple[str, ...], str], ...]
    """Fields of `Counters`, and a query for them, as rows `(tenant, counter…)`, by the accounts that `_BY_ACCOUNT`
    names. What the server is not configured to count is missing there, or 0 even for an administrator who is never
    idle."""
    shortest_wait: int
    """The smallest possible `lock_wait_timeout`, in seconds."""
    cached_statistics: bool
    """Sizes in `information_schema.tables` are up to a day old unless the session asks for current ones."""
    recover: str
    """Lists the prepared XA branches."""
    dump_flags: tuple[str, ...]
    """The flags of its dump tool, beside those that both tools have."""
    login_plugin: str
    """The plugin with which its clients offer to log in, without a password where nothing asks for one."""
    database_comment: str | None
    """A query for the comment on the database of a `%s` name; None if databases have none."""
    lift_read_only: str | None
    """Makes a read-only database `{name}` writable again; None if databases can't be read-only."""


def _mysql_identified(password: str) -> str:
    # This server keeps passwords out of its logs, and the login plugin is its own choice.
    return f"IDENTIFIED BY {literal(password)}"


def _mariadb_identified(password: str) -> str:
    # This server logs a clear password, so it gets the hash that it would store.
    digest = hashlib.sha1(hashlib.sha1(password.encode()).digest()).hexdigest()  # noqa: S324  the protocol's own
    return f"IDENTIFIED VIA mysql_native_password USING '*{digest.upper()}'"


def _mysql_overlapping(old: str, new: str) -> tuple[str, ...]:
    # RETAIN makes the present first password the second one. Alone, and run again after a lost answer, it would make
    # the new one both, and the old one would be gone.
    return tuple(f"{_mysql_identified(password)} RETAIN CURRENT PASSWORD" for password in (old, new))


def _mariadb_overlapping(old: str, new: str) -> tuple[str, ...]:
    # The old one first: its clients log in as ever, and only those with the new one are asked a second time.
    return (f"{_mariadb_identified(old)} OR {_mariadb_identified(new).removeprefix('IDENTIFIED VIA ')}",)


# information_schema.tables would report 16 KiB for a table of 50 MB just loaded.
# What a rebuild writes has a name of the server's own, that no tenant can give: in a tenant's name # is @0023. Oracle's
# server shows it when the rebuild is done, under the table's name.
_SIZES = """
SELECT SUBSTRING_INDEX(name, '/', 1) AS name, CAST(SUM(file_size) AS UNSIGNED), SUM(name LIKE '%%/#sql%%')
FROM information_schema.{tablespaces} WHERE SUBSTRING_INDEX(name, '/', 1) IN %s GROUP BY 1
"""
# Of open sessions: each has its own files, which include what a statement sorts and joins.
_TEMPORARY = """
SELECT SUBSTRING_INDEX(p.user, '_', 1), SUM(t.size)
FROM information_schema.innodb_session_temp_tablespaces t JOIN information_schema.processlist p ON p.id = t.id
WHERE t.state = 'ACTIVE' AND SUBSTRING_INDEX(p.user, '_', 1) IN %s GROUP BY 1
"""
# The data dictionary stores routines, views and triggers twice, as written and in UTF-8, and a row for each.
_MYSQL_DEFINITIONS = (
    "SELECT routine_schema, SUM(1024 + 2 * COALESCE(OCTET_LENGTH(routine_definition), 0)"
    " + OCTET_LENGTH(routine_comment)) FROM information_schema.routines WHERE routine_schema IN %s GROUP BY 1",
    "SELECT specific_schema, COUNT(*) * 256 FROM information_schema.parameters WHERE specific_schema IN %s GROUP BY 1",
    "SELECT table_schema, SUM(1024 + 2 * COALESCE(OCTET_LENGTH(view_definition), 0)) FROM information_schema.views"
    " WHERE table_schema IN %s GROUP BY 1",
    "SELECT trigger_schema, SUM(1024 + 2 * COALESCE(OCTET_LENGTH(action_statement), 0))"
    " FROM information_schema.triggers WHERE trigger_schema IN %s GROUP BY 1",
    "SELECT table_schema, SUM(OCTET_LENGTH(column_comment) + OCTET_LENGTH(column_type)"
    " + COALESCE(OCTET_LENGTH(generation_expression), 0)) FROM information_schema.columns"
    " WHERE table_schema IN %s GROUP BY 1",
)
_MARIADB_DEFINITIONS = (
    "SELECT db, SUM(1024 + OCTET_LENGTH(body) + OCTET_LENGTH(body_utf8) + OCTET_LENGTH(param_list)"
    " + OCTET_LENGTH(`returns`) + OCTET_LENGTH(comment)) FROM mysql.proc WHERE db IN %s GROUP BY 1",
    *_MYSQL_DEFINITIONS[2:],
)
_MYSQL_MEMORY = """
SELECT processlist_id, SUBSTRING_INDEX(processlist_user, '_', 1), total_memory FROM performance_schema.threads
WHERE SUBSTRING_INDEX(processlist_user, '_', 1) IN %s AND total_memory > %s ORDER BY total_memory DESC LIMIT 100
"""
# 1.7 KB each on MySQL 9.7, 600,000 in nine seconds, of which the session's own memory shows a tenth. Nothing is like it
# on MariaDB, where 100,000 take minutes.
_MYSQL_NAMED_LOCKS = """
SELECT t.processlist_id, SUBSTRING_INDEX(t.processlist_user, '_', 1), 2048 * COUNT(*)
FROM performance_schema.metadata_locks l JOIN performance_schema.threads t ON t.thread_id = l.owner_thread_id
WHERE l.object_type = 'USER LEVEL LOCK' AND SUBSTRING_INDEX(t.processlist_user, '_', 1) IN %s
GROUP BY 1, 2 HAVING 2048 * COUNT(*) > %s ORDER BY COUNT(*) DESC LIMIT 100
"""
_MARIADB_MEMORY = """
SELECT id, SUBSTRING_INDEX(user, '_', 1), memory_used FROM information_schema.processlist
WHERE SUBSTRING_INDEX(user, '_', 1) IN %s AND memory_used > %s ORDER BY memory_used DESC LIMIT 100
"""
_MYSQL_PREPARED = """
SELECT t.processlist_id, SUBSTRING_INDEX(t.processlist_user, '_', 1)
FROM performance_schema.prepared_statements_instances p
JOIN performance_schema.threads t ON t.thread_id = p.owner_thread_id
WHERE SUBSTRING_INDEX(t.processlist_user, '_', 1) IN %s GROUP BY 1, 2 ORDER BY COUNT(*) DESC LIMIT 1
"""
# The server doesn't report whose they are. Each takes some kilobytes of its session's memory, and a session without any
# takes little.
_MARIADB_PREPARED = """
SELECT id, SUBSTRING_INDEX(user, '_', 1) FROM information_schema.processlist
WHERE SUBSTRING_INDEX(user, '_', 1) IN %s ORDER BY memory_used DESC LIMIT 1
"""
# The server works the difference out of one and the same moment, so that it never changes while it runs.
_STARTED = "SELECT UNIX_TIMESTAMP() - variable_value FROM {schema}.global_status WHERE variable_name = 'Uptime'"
# Our own account by itself, and all of a tenant's together.
_NAMED = "IF(user = %s, user, SUBSTRING_INDEX(user, '_', 1))"
_BY_ACCOUNT = "user = %s OR SUBSTRING_INDEX(user, '_', 1) IN %s"
_TRANSACTIONS = f"""
SELECT {_NAMED}, SUM(count_star) FROM performance_schema.events_transactions_summary_by_user_by_event_name
WHERE {_BY_ACCOUNT} GROUP BY 1
"""  # noqa: S608  constants
# Statements by account would be a row for each kind of statement, and two milliseconds a tenant.
_MYSQL_ROWS = f"""
SELECT {_NAMED}, CAST(SUM(IF(variable_name LIKE 'Handler\\_read\\_%%', variable_value, 0)) AS UNSIGNED),
       CAST(SUM(IF(variable_name LIKE 'Handler\\_read\\_%%', 0, variable_value)) AS UNSIGNED)
FROM performance_schema.status_by_user
WHERE variable_name IN ('Handler_read_key', 'Handler_read_next', 'Handler_read_prev', 'Handler_read_rnd',
                        'Handler_read_rnd_next', 'Handler_write', 'Handler_update', 'Handler_delete')
AND ({_BY_ACCOUNT}) GROUP BY 1
"""  # noqa: S608  constants
_MARIADB_ROWS = f"""
SELECT {_NAMED}, SUM(rows_read), SUM(rows_inserted + rows_updated + rows_deleted)
FROM information_schema.user_statistics WHERE {_BY_ACCOUNT} GROUP BY 1
"""  # noqa: S608  constants
MYSQL = Flavour(
    name="mysql",
    # The first in which an account may have two passwords.
    oldest=(8, 0, 14),
    # SHOW_ROUTINE lets it read the length of routines' bodies.
    global_privileges=("CREATE USER", "PROCESS", "CONNECTION_ADMIN", "XA_RECOVER_ADMIN", "SHOW_ROUTINE"),
    more_grants=(
        "SELECT ON performance_schema.data_locks",
        "SELECT ON performance_schema.events_transactions_current",
        "SELECT ON performance_schema.events_transactions_summary_by_user_by_event_name",
        "SELECT ON performance_schema.metadata_locks",
        "SELECT ON performance_schema.prepared_statements_instances",
        "SELECT ON performance_schema.status_by_user",
        "SELECT ON performance_schema.threads",
    ),
    identified=_mysql_identified,
    overlapping=_mysql_overlapping,
    dropping_second=("DISCARD OLD PASSWORD",),
    sizes=_SIZES.format(tablespaces="innodb_tablespaces"),
    shares_files=True,
    temporary=_TEMPORARY,
    definitions=_MYSQL_DEFINITIONS,
    time_limit=lambda seconds: f"max_execution_time = {1000 * seconds:.0f}",
    session_memory=_MYSQL_MEMORY,
    named_locks=_MYSQL_NAMED_LOCKS,
    prepared_statements=_MYSQL_PREPARED,
    started=_STARTED.format(schema="performance_schema"),
    counters=((("transactions",), _TRANSACTIONS), (("rows_read", "rows_written"), _MYSQL_ROWS)),
    shortest_wait=1,
    cached_statistics=True,
    recover="XA RECOVER CONVERT XID",
    dump_flags=(
        "--ssl-mode=DISABLED",
        "--set-gtid-purged=OFF",
        "--loose-skip-column-statistics",
        "--loose-skip-masking-policies",
    ),
    login_plugin="caching_sha2_password",
    database_comment=None,
    lift_read_only="ALTER DATABASE `{name}` READ ONLY = 0",
)
MARIADB = Flavour(
    name="mariadb",
    oldest=(10, 5),
    global_privileges=("CREATE USER", "PROCESS", "CONNECTION ADMIN"),
    more_grants=(
        "SELECT ON mysql.proc",
        "SELECT ON performance_schema.events_transactions_summary_by_user_by_event_name",
    ),
    identified=_mariadb_identified,
    overlapping=_mariadb_overlapping,
    dropping_second=(),
    sizes=_SIZES.format(tablespaces="innodb_sys_tablespaces"),
    shares_files=False,
    temporary=None,
    definitions=_MARIADB_DEFINITIONS,
    time_limit=lambda seconds: f"max_statement_time = {seconds:.3f}",
    session_memory=_MARIADB_MEMORY,
    named_locks=None,
    prepared_statements=_MARIADB_PREPARED,
    started=_STARTED.format(schema="information_schema"),
    counters=((("transactions",), _TRANSACTIONS), (("rows_read", "rows_written"), _MARIADB_ROWS)),
    shortest_wait=0,
    cached_statistics=False,
    recover="XA RECOVER FORMAT='SQL'",
    dump_flags=("--skip-ssl",),
    login_plugin="mysql_native_password",
    database_comment="SELECT schema_comment FROM information_schema.schemata WHERE schema_name = %s",
    lift_read_only=None,
)


def flavour_of(server_version: str) -> Flavour:
    """The flavour of a server, from the version in its greeting."""
    return MARIADB if "mariadb" in server_version.lower() else MYSQL


def administrator_grants(flavour: str, account: str = "'headwater_provisioner'@'%'") -> tuple[str, ...]:
    """The GRANT statements that make an existing account an administrator for this service, with no more than it
    needs; root runs them. `flavour` is `mysql` or `mariadb`; `account` is written as in SQL."""
    chosen = {"mysql": MYSQL, "mariadb": MARIADB}[flavour]
    return (
        f"GRANT {', '.join(chosen.global_privileges)} ON *.* TO {account}",
        # An account can only grant what it holds itself.
        f"GRANT {TENANT_PRIVILEGES} ON `{TENANT_PATTERN}`.* TO {account} WITH GRANT OPTION",
        f"GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, ALTER, INDEX ON `{BOOKKEEPING}`.* TO {account}",
        # Which accounts exist, and which have no password, but no password hashes.
        f"GRANT SELECT (Host, User) ON mysql.user TO {account}",
        f"GRANT SELECT (Host, Db, User) ON mysql.db TO {account}",
        *[f"GRANT {grant} TO {account}" for grant in chosen.more_grants],
    )
