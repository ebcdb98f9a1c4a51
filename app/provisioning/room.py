"""Room on a database's host for the connections that it is to be promised."""

from app.databases.records import DatabaseRecord
from app.hosts.loads import loads_of
from app.pool.eviction import make_room
from app.store.session import fetch


async def room_on_host(record: DatabaseRecord, connections: int, *, promised: int) -> int:
    """How many connections the host could promise to it, `connections` at least where members of the pool can give way
    to them. `promised` of them count as its own already. The host stays locked until the transaction's end."""
    await fetch("SELECT 1 FROM engine_hosts WHERE id = $1 FOR NO KEY UPDATE", record.host_id)
    load = (await loads_of([record.host_id]))[0]
    room = load.connection_capacity - load.connections + promised
    if connections > room and await make_room([record.host_id], databases=0, connections=connections - promised):
        return connections
    return room
