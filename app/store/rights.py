"""What the service's role may do in our own database: read and write rows, and nothing to the tables themselves.

Tables with rules of their own are declared here and nowhere else. No default privileges are set: they would give a
partition the rights that its table withholds. So rights are renewed after migrations, and a partition has none of its
own: its table's are asked instead.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta

import msgspec

from app.store.session import execute, fetch_scalar, fetch_values

READ_ONLY = frozenset({"migration"})
"""Tables that migrations alone write."""


class TableRules(msgspec.Struct, frozen=True, kw_only=True):
    insert_only: frozenset[str] = frozenset()
    """Tables whose rows the service adds and never changes or deletes. No foreign key of theirs may have an action: it
    would run with the rights of the owner."""
    retention: Mapping[str, timedelta] = {}
    """For partitioned tables, how long ago a partition must have ended before the service may drop it; for tables that
    aren't named here, a day."""


RULES = TableRules(
    insert_only=frozenset({"audit_events", "audit_leaves", "audit_seals", "usage_periods"}),
    retention={"audit_events": timedelta(days=30), "audit_leaves": timedelta(days=30)},
)

_TABLES = """
SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = current_schema() AND position(c.relkind::text IN $1) > 0 AND pg_has_role(c.relowner, 'USAGE')
  AND ($2::bool OR NOT c.relispartition) AND c.relname <> ALL ($3::text[])
ORDER BY 1
"""
_FUNCTIONS = """
SELECT p.oid::regprocedure::text FROM pg_proc p
WHERE p.pronamespace = current_schema()::regnamespace AND pg_has_role(p.proowner, 'USAGE') ORDER BY 1
"""
_GRANTED = """
SELECT r.rolname FROM pg_class c, aclexplode(c.relacl) a JOIN pg_roles r ON r.oid = a.grantee
WHERE c.oid = to_regclass('migration') AND a.privilege_type = 'SELECT' AND a.grantee <> c.relowner
"""


_RETENTION = """
CREATE OR REPLACE FUNCTION kept_at_least(parent text) RETURNS interval LANGUAGE sql STABLE SET search_path = pg_catalog
RETURN coalesce(('{}'::jsonb ->> parent)::interval, interval '1 day')
"""


async def renew_rights() -> None:
    """Gives the roles that have rights here the rights of this version, in the current transaction of the tables'
    owner."""
    await _declare_retention(RULES)
    for role in await fetch_values(str, _GRANTED):
        await give_rights(role)


async def give_rights(role: str, rules: TableRules = RULES) -> None:
    """Gives the role these rights and no others, in the current transaction of the tables' owner."""
    await _declare_retention(rules)
    schema = await fetch_scalar(str, "SELECT quote_ident(current_schema())")
    database = await fetch_scalar(str, "SELECT quote_ident(current_database())")
    to = await fetch_scalar(str, "SELECT quote_ident($1)", role)
    # Servers before version 15 let everybody create here; temporary tables are for everybody still.
    await execute(f"REVOKE CREATE ON SCHEMA {schema} FROM PUBLIC, {to}")
    await execute(f"REVOKE TEMPORARY ON DATABASE {database} FROM PUBLIC, {to}")
    await execute(f"GRANT CONNECT ON DATABASE {database} TO {to}")
    await execute(f"GRANT USAGE ON SCHEMA {schema} TO {to}")
    sequences, functions = await _objects("S"), await fetch_values(str, _FUNCTIONS)
    await _each("REVOKE ALL ON TABLE {} FROM PUBLIC, " + to, await _objects("rpvm", partitions=True))
    await _each("GRANT SELECT ON TABLE {} TO " + to, await _objects("rpvm"))
    await _each("GRANT INSERT ON TABLE {} TO " + to, await _objects("rp", READ_ONLY))
    await _each("GRANT UPDATE, DELETE ON TABLE {} TO " + to, await _objects("rp", READ_ONLY | rules.insert_only))
    await _each("REVOKE ALL ON SEQUENCE {} FROM PUBLIC, " + to, sequences)
    await _each("GRANT USAGE ON SEQUENCE {} TO " + to, sequences)
    await _each("REVOKE ALL ON FUNCTION {} FROM PUBLIC, " + to, functions)
    await _each("GRANT EXECUTE ON FUNCTION {} TO " + to, functions)


async def _declare_retention(rules: TableRules) -> None:
    """Tells the function that drops partitions how long each table keeps its own."""
    retention = {table: f"{age.total_seconds()} seconds" for table, age in rules.retention.items()}
    await execute(_RETENTION.format(msgspec.json.encode(retention).decode()))


async def _objects(kinds: str, without: frozenset[str] = frozenset(), *, partitions: bool = False) -> list[str]:
    """The names of these objects as SQL. `kinds` are letters of `pg_class.relkind`."""
    return await fetch_values(str, _TABLES, kinds, partitions, list(without))


async def _each(statement: str, objects: Sequence[str]) -> None:
    """Executes the statement for all of these objects at once."""
    if objects:
        await execute(statement.format(", ".join(objects)))
