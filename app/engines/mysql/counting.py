"""What a server has counted for tenants, by their accounts: the counters of a table are lost with the table."""

from collections.abc import Sequence

from msgspec.structs import replace

from app.engines.base import COUNT_SECONDS, Counters
from app.engines.mysql.connection import MySQLConnection
from app.engines.mysql.errors import NO_PRIVILEGE_ON_TABLE, ignored
from app.engines.tenants import counted

_OWN = "SELECT SUBSTRING_INDEX(CURRENT_USER(), '@', 1)"


async def counters(connection: MySQLConnection, names: Sequence[str]) -> dict[str, Counters]:
    """The counters of these tenants. Those of our own account are read with them: it is never idle, so its counters
    show whether the server counts, and that all counters began anew. An account that has not logged in since then has
    done nothing."""
    flavour = connection.flavour
    found = {name: Counters(began="") for name in names}
    witness: list[int] = []
    await connection.run(f"SET SESSION {flavour.time_limit(COUNT_SECONDS)}")
    try:
        ((own,),) = await connection.run(_OWN)
        ((began,),) = await connection.run(flavour.started)
        for columns, statement in flavour.counters:
            with ignored(NO_PRIVILEGE_ON_TABLE):  # of an administrator that was made before this was asked for
                rows = await connection.run(statement, (own, own, [*names]))
                counts = {str(name): [counted(value) for value in values] for name, *values in rows}
                ours = [value or 0 for value in counts.get(str(own), ())]
                if any(ours):
                    witness += ours
                    found = {name: _with(one, columns, counts.get(name)) for name, one in found.items()}
    finally:
        if connection.usable:
            await connection.run(f"SET SESSION {flavour.time_limit(0)}")
    return {name: replace(one, began=str(began), witness=tuple(witness)) for name, one in found.items()}


def _with(counters: Counters, columns: Sequence[str], values: Sequence[int | None] | None) -> Counters:
    return replace(counters, **dict(zip(columns, values or [0] * len(columns), strict=True)))
