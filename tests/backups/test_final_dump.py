"""The dump of a deleted database goes on while the steps of its deletion are repeated."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from activities.engine import EngineActivitiesOnHosts
from app.databases.passwords import tenant_of
from app.engines.dumping import count_rows
from app.hosts.slots import HostSlots
from app.outbox.provisionings import RunningProvisionings
from app.provisioning import service
from app.provisioning.undeletion import undelete
from app.quotas.plans import DEFAULT_PLANS
from app.store.session import transaction
from tests.credentials.stepped import Died, MortalAdapters
from tests.quotas.bench import Bench, bench
from tests.quotas.tenant_session import refused, session_of
from tests.servers import RunningServer

_MEGABYTES = 16
"""More than lies between the tool and who reads it: the dump is not over before it is read."""


async def test_a_revocation_that_is_repeated_leaves_it(control_dsn: str, postgres_server: RunningServer) -> None:
    async with bench(control_dsn, postgres_server) as on_bench:
        made = await on_bench.create()
        async with session_of(made) as session:
            await session.load(_MEGABYTES)
        await _delete(made)
        await on_bench.steps.revoke_access(UUID(made["uuid"]))
        record = await on_bench.record(made)
        adapter = await on_bench.adapters.of_host(record.host_id)
        async with adapter.dumping(tenant_of(record, on_bench.box)) as dump:
            await on_bench.steps.revoke_access(record.uuid)
            size = sum([len(chunk) async for chunk in dump.chunks()])
            assert size > _MEGABYTES * 2**20
            assert count_rows(await dump.contents()) == _MEGABYTES * 1024


async def test_a_revocation_that_is_not_known_to_have_come_through_is_made(
    control_dsn: str, postgres_server: RunningServer
) -> None:
    async with bench(control_dsn, postgres_server) as on_bench:
        made = await on_bench.create()
        await _delete(made)
        with pytest.raises(Died):
            await _dying(on_bench).revoke_access(UUID(made["uuid"]))
        for _ in range(2):
            assert not await refused(made)
            await on_bench.steps.revoke_access(UUID(made["uuid"]))
            assert await refused(made)
            await undelete(DEFAULT_PLANS, UUID(made["uuid"]))
            await on_bench.follow(made)
            await _delete(made)


async def _delete(made: dict[str, Any]) -> None:
    async with transaction():
        await service.delete_any(DEFAULT_PLANS, UUID(made["uuid"]), timedelta(hours=1))


def _dying(on_bench: Bench) -> EngineActivitiesOnHosts:
    """The steps in a worker that dies before the engine is asked."""
    mortal: Any = MortalAdapters(on_bench.adapters, "revoke_access", after=False)
    return EngineActivitiesOnHosts(on_bench.plans, on_bench.box, mortal, HostSlots(), RunningProvisionings())
