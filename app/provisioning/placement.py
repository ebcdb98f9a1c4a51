"""A new database's row, on a host that has room for it."""

from collections.abc import Collection

from app.contracts.base import Engine
from app.core.errors import CapacityExhausted, InvalidField
from app.core.ids import engine_name, engine_password, new_uuid
from app.core.secrets import SecretBox
from app.databases import ownership
from app.databases.labels import new_labels
from app.databases.ownership import MemberKind, PlacedDatabase
from app.databases.passwords import password_place
from app.databases.pool.eviction import place_with_room_made
from app.databases.records import DatabaseRecord
from app.databases.schemas import CreateDatabase, DatabaseSource
from app.engines.placement import HostLoad
from app.hosts.loads import place
from app.hosts.records import list_served


async def insert_placed(
    box: SecretBox,
    request: CreateDatabase,
    kind: MemberKind,
    *,
    team_id: int,
    user_id: int,
    among: Collection[int] | None = None,
    prefers: int | None = None,
) -> DatabaseRecord:
    """Writes the row, in a transaction: the host stays locked until its end. `among` are the hosts that can be chosen,
    all if it is None; `prefers` is the one that is chosen if it has room. Raises `InvalidField` or
    `CapacityExhausted`."""
    host = None
    if prefers is not None:
        host = await place(kind.engine, kind.region, kind.connections, among=[prefers])
    host = host or await _place(kind.engine, kind.region, kind.connections, among)
    uuid = new_uuid()
    return await ownership.insert(
        PlacedDatabase(
            uuid=uuid,
            team_id=team_id,
            user_id=user_id,
            name=request.name,
            engine=kind.engine,
            region=host.region,
            plan=request.plan_name,
            quotas=request.quotas,
            connections=kind.connections,
            host_id=host.id,
            engine_name=engine_name(),
            password_sealed=box.seal(engine_password(), password_place(uuid)),
            deletion_protection=request.deletion_protection,
            expires_at=request.expires_at,
            labels=new_labels(request.labels),
            restoring=isinstance(request.source, DatabaseSource),
        )
    )


async def _place(engine: Engine, region: str | None, connections: int, among: Collection[int] | None) -> HostLoad:
    served = await list_served(engine)
    codes = [one.region for one in served]
    if region is not None and region not in codes:
        where = f"It is served in {', '.join(codes)}." if codes else "It is served nowhere."
        raise InvalidField("region", f"{engine.value} is not served in {region!r}. {where}")
    if not served:
        raise InvalidField("db_type", f"No host serves {engine.value}.")
    host = await place_with_room_made(engine, region, connections, among=among)
    if host is None:
        place = region or "any region"
        if not any(one.open for one in served if region in (None, one.region)):
            raise CapacityExhausted(f"No {engine.value} host in {place} takes new databases.", field="region")
        if among is not None and not among:
            raise CapacityExhausted(
                f"No {engine.value} host in {place} takes the source's data, or has storage for it.", field="source"
            )
        raise CapacityExhausted(
            f"No {engine.value} host in {place} has room for a database with {connections} connections.",
            field="region" if region else "connection_hard_limit",
        )
    return host
