"""What tenants take up on a server: bytes on its disk, and sessions."""

from collections.abc import Sequence

from app.engines.base import Usage
from app.engines.mysql import shared_files
from app.engines.mysql.connections import LOCK_SECONDS, Connection
from app.engines.naming import HELPER_SEPARATOR

# Asked for by name alone, so that only the dictionary is read; the sizes of the few that are found cost an open each.
_OTHER_ENGINES = """
SELECT DISTINCT table_schema FROM information_schema.tables
WHERE table_schema IN %s AND table_type = 'BASE TABLE' AND engine <> 'InnoDB'
"""
_OTHER_SIZES = """
SELECT table_schema, SUM(COALESCE(data_length, 0) + COALESCE(index_length, 0)) FROM information_schema.tables
WHERE table_schema IN %s AND table_type = 'BASE TABLE' AND engine <> 'InnoDB' GROUP BY 1
"""

_SESSIONS = """
SELECT SUBSTRING_INDEX(user, %s, 1), id FROM information_schema.processlist WHERE SUBSTRING_INDEX(user, %s, 1) IN %s
"""


async def measure(connection: Connection, names: Sequence[str]) -> dict[str, Usage]:
    # What one tenant holds locked is not to hold up the measurement of all others.
    await connection.run(f"SET SESSION lock_wait_timeout = {connection.flavour.shortest_wait}")
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
    if connection.flavour.shares_files:
        for name, octets in (await shared_files.estimates(connection, names)).items():
            storage[name] = max(storage.get(name, 0), octets)
    if connection.flavour.temporary is not None:
        for name, octets in await connection.run(connection.flavour.temporary, ([*names],)):
            storage[name] = storage.get(name, 0) + int(octets)
    await connection.run(f"SET SESSION lock_wait_timeout = {LOCK_SECONDS}")
    held = await sessions(connection, names)
    return {name: Usage(storage_bytes=octets, connections=len(held.get(name, ()))) for name, octets in storage.items()}


async def sessions(connection: Connection, names: Sequence[str]) -> dict[str, frozenset[str]]:
    """Those of helper accounts too. The server counts its sessions on for as long as it runs."""
    found: dict[str, set[str]] = {}
    for name, number in await connection.run(_SESSIONS, (HELPER_SEPARATOR, HELPER_SEPARATOR, [*names])):
        found.setdefault(name, set()).add(str(number))
    return {name: frozenset(numbers) for name, numbers in found.items()}


async def _in_other_engines(connection: Connection, names: Sequence[str]) -> list[tuple[str, int]]:
    """Tables of other engines are no tablespaces of InnoDB, and would be free of charge."""
    schemas = [name for (name,) in await connection.run(_OTHER_ENGINES, ([*names],))]
    if not schemas:
        return []
    if connection.flavour.cached_statistics:
        await connection.run("SET SESSION information_schema_stats_expiry = 0")
    return [(name, int(octets or 0)) for name, octets in await connection.run(_OTHER_SIZES, (schemas,))]
