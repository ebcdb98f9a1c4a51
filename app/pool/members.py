"""The rows of the pool's databases: made, thrown away, forgotten. A member has no team, and tells of no event."""

from uuid import UUID

from app.contracts.base import Engine
from app.contracts.databases import (
    DeleteDatabase,
    DeleteDatabaseInput,
    Placement,
    ProvisionDatabaseInput,
)
from app.contracts.queues import delete_workflow_id
from app.core.clock import utc_now
from app.core.ids import engine_name, engine_password, new_uuid
from app.core.secrets import SecretBox
from app.databases.passwords import password_place
from app.engines.placement import HostLoad
from app.outbox.provisionings import request_provisioning
from app.outbox.workflow_starts import UPKEEP, request_start
from app.pool.decision import Member
from app.quotas.plans import Quotas, limits_in_force
from app.store.session import fetch, fetch_all, transaction

MEMBER_PLAN = "free"
"""The plan on whose limits members sit: most creates then find nothing to change."""


def member_connections() -> int:
    return limits_in_force(MEMBER_PLAN, Quotas()).connection_hard_limit


async def members_of(engine: Engine, region: str) -> list[Member]:
    """Those that are ready or on their way."""
    return await fetch_all(
        Member,
        """
        SELECT d.uuid, d.status, d.connections, d.provisioned_at, h.draining, h.sick_until IS NOT NULL AS sick
        FROM databases d JOIN engine_hosts h ON h.id = d.host_id
        WHERE d.engine = $1 AND d.region = $2 AND d.team_id IS NULL AND d.destroyed_at IS NULL
          AND d.status IN ('provisioning', 'active')
        ORDER BY d.id
        """,
        engine,
        region,
    )


async def begin_member(box: SecretBox, engine: Engine, host: HostLoad) -> None:
    """In the transaction in which `host` was chosen. It is made like any other database, at the lowest priority."""
    uuid, name = new_uuid(), engine_name()
    await fetch(
        """
        INSERT INTO databases (uuid, name, engine, region, plan, status, host_id, engine_name, password_sealed,
                               connections)
        VALUES ($1, '', $2, $3, $4, 'provisioning', $5, $6, $7, $8)
        """,
        uuid,
        engine,
        host.region,
        MEMBER_PLAN,
        host.id,
        name,
        box.seal(engine_password(), password_place(uuid)),
        member_connections(),
    )
    await request_provisioning(
        ProvisionDatabaseInput(
            database=uuid,
            engine=engine,
            region=host.region,
            team_id=None,
            placement=Placement(host_id=host.id, address=f"{host.host}:{host.port}", name=name),
        ),
        priority=UPKEEP,
        summary=f"{engine.value} database {uuid} in {host.region}, for the warm pool",
    )


async def discard_member(uuid: UUID) -> bool:
    """Has it destroyed, unless it was claimed meanwhile. Says whether it was still the pool's."""
    async with transaction():
        rows = await fetch(
            """
            UPDATE databases SET status = 'deleted', deleted_at = now(), updated_at = now(), destroy_at = now(),
                   deletion_revision = deletion_revision + 1
            WHERE uuid = $1 AND team_id IS NULL AND status = 'active' RETURNING engine, region, deletion_revision
            """,
            uuid,
        )
        for row in rows:
            await request_start(
                DeleteDatabase,
                delete_workflow_id(uuid, row["deletion_revision"]),
                DeleteDatabaseInput(
                    database=uuid,
                    engine=Engine(row["engine"]),
                    region=row["region"],
                    team_id=None,
                    destroy_at=utc_now(),
                    cancel_provisioning=False,
                ),
                priority=UPKEEP,
                summary=f"{row['engine']} database {uuid} in {row['region']}, thrown away by the warm pool",
                relayed=True,
            )
    return bool(rows)


async def forget_discarded() -> None:
    """Rows of which nothing is left on any host, and which nobody ever saw. Their workflows have long ended."""
    await fetch("DELETE FROM databases WHERE team_id IS NULL AND destroyed_at < now() - interval '3 days'")
