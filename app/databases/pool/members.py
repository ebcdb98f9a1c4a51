"""Members of the warm pool, begun and discarded. A member has no team, so no event is written for it."""

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
from app.databases.ownership import PlacedDatabase, insert
from app.databases.passwords import password_place
from app.databases.pooled import mark_discarded
from app.engines.placement import HostLoad
from app.outbox.provisionings import request_provisioning
from app.outbox.workflow_starts import UPKEEP, request_start
from app.quotas.plans import Plans, Quotas, limits_in_force
from app.store.session import transaction

MEMBER_PLAN = "free"
"""The plan on whose limits members sit: most creates then find nothing to change."""


def member_connections(plans: Plans) -> int:
    return limits_in_force(plans, MEMBER_PLAN, Quotas()).connection_hard_limit


async def begin_member(plans: Plans, box: SecretBox, engine: Engine, host: HostLoad) -> None:
    """Begins a member, in the transaction in which `host` was chosen. It is made like any other database, at the lowest
    priority."""
    uuid, name = new_uuid(), engine_name()
    await insert(
        PlacedDatabase(
            uuid=uuid,
            engine=engine,
            region=host.region,
            plan=MEMBER_PLAN,
            connections=member_connections(plans),
            host_id=host.id,
            engine_name=name,
            password_sealed=box.seal(engine_password(), password_place(uuid)),
        )
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
    """Has a member destroyed, unless it was claimed meanwhile. Returns whether it was still the pool's."""
    async with transaction():
        discarded = await mark_discarded(uuid)
        if discarded is not None:
            await request_start(
                DeleteDatabase,
                delete_workflow_id(uuid, discarded.deletion_revision),
                DeleteDatabaseInput(
                    database=uuid,
                    engine=discarded.engine,
                    region=discarded.region,
                    team_id=None,
                    destroy_at=utc_now(),
                    cancel_provisioning=False,
                ),
                priority=UPKEEP,
                summary=f"{discarded.engine.value} database {uuid} in {discarded.region}, discarded by the warm pool",
                relayed=True,
            )
    return discarded is not None
