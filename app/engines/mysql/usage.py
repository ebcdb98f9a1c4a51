"""What tenants take up on a server: bytes on its disk, and sessions."""

from collections.abc import Sequence

from app.engines.base import Usage
from app.engines.mysql.connections import Connection

# Asked for by name alone, so that only the dictionary is read; the sizes of the few that are found cost an open each.
_OTHER_ENGINES = """
SELECT DISTINCT table_schema FROM information_schema.tables
WHERE table_schema IN %s AND table_type = 'BASE TABLE' AND engine <> 'InnoDB'
"""
_OTHER_SIZES = """
SELECT table_schema, SUM(COALESCE(data_length, 0) + COALESCE(index_length, 0)) FROM information_schema.tables
WHERE table_schema IN %s AND table_type = 'BASE TABLE' AND engine <> 'InnoDB' GROUP BY 1
"""
# Of every engine, so that what has a file of its own needn't be told apart.
_ALL_SIZES = """
SELECT table_schema, SUM(COALESCE(data_length, 0) + COALESCE(index_length, 0)) FROM information_schema.tables
WHERE table_schema IN %s AND table_type = 'BASE TABLE' GROUP BY 1
"""
# A tenant may turn off the statistics that these sizes come from. Some at a time: it may have made thousands.
_UNCOUNTED = """
SELECT table_schema, table_name FROM information_schema.tables
WHERE table_schema IN %s AND engine = 'InnoDB' AND LOCATE('stats_auto_recalc=0', create_options) > 0
ORDER BY RAND() LIMIT 5
"""


async def measure(connection: Connection, names: Sequence[str]) -> dict[str, Usage]:
    found = await connection.run(
        "SELECT schema_name FROM information_schema.schemata WHERE schema_name IN %s", ([*names],)
    )
    storage = {str(name): 0 for (name,) in found}
    for name, octets in [
        *await connection.run(connection.flavour.sizes, ([*names],)),
        *await _in_other_engines(connection, names),
    ]:
        if name in storage:
            storage[name] += int(octets or 0)
    for name, octets in await _with_shared_files(connection, names):
        storage[name] = max(storage.get(name, 0), octets)
    held = await sessions(connection, names)
    return {name: Usage(storage_bytes=octets, connections=len(held.get(name, ()))) for name, octets in storage.items()}


async def sessions(connection: Connection, names: Sequence[str]) -> dict[str, frozenset[str]]:
    """The server counts its sessions on for as long as it runs."""
    rows = await connection.run("SELECT user, id FROM information_schema.processlist WHERE user IN %s", ([*names],))
    return {name: frozenset(str(number) for user, number in rows if user == name) for name, _ in rows}


async def _in_other_engines(connection: Connection, names: Sequence[str]) -> list[tuple[str, int]]:
    """Tables of other engines are no tablespaces of InnoDB, and would be free of charge."""
    schemas = [name for (name,) in await connection.run(_OTHER_ENGINES, ([*names],))]
    if not schemas:
        return []
    if connection.flavour.cached_statistics:
        await connection.run("SET SESSION information_schema_stats_expiry = 0")
    return [(name, int(octets or 0)) for name, octets in await connection.run(_OTHER_SIZES, (schemas,))]


async def _with_shared_files(connection: Connection, names: Sequence[str]) -> list[tuple[str, int]]:
    """All that the databases hold which put tables into the server's own file, as the server estimates it."""
    if connection.flavour.shared is None:
        return []
    schemas = [name for (name,) in await connection.run(connection.flavour.shared, ([*names],))]
    if not schemas:
        return []
    await connection.run("SET SESSION information_schema_stats_expiry = 0")
    # A tenant's own LOCK TABLES is not to hold up the measurement of all others.
    await connection.run("SET SESSION lock_wait_timeout = 1")
    for schema, table in await connection.run(_UNCOUNTED, (schemas,)):
        quoted = table.replace("`", "``")
        await connection.run(f"ANALYZE NO_WRITE_TO_BINLOG TABLE `{schema}`.`{quoted}`")
    await connection.run("SET SESSION lock_wait_timeout = DEFAULT")
    return [(name, int(octets or 0)) for name, octets in await connection.run(_ALL_SIZES, (schemas,))]
