"""Databases that are needed for a while go by themselves, and are no orphans meanwhile."""

from datetime import timedelta

import pytest

from app.contracts.base import Engine
from app.databases import records
from app.databases.passwords import tenant_of
from app.databases.records import DatabaseRecord
from app.databases.scratch import ScratchPurpose, add_scratch, end_scratch, prolong_scratch
from app.engines.base import EngineLimits
from app.hosts.adapters import Adapters
from app.hosts.records import registered_hosts
from app.store.session import transaction
from tests.restores.conftest import ENGINES
from tests.support.service import REGION, RunningService
from tests.support.waiting import until

_A_DAY = timedelta(days=1)


@pytest.mark.parametrize("engine", ENGINES)
async def test_it_is_destroyed_when_nobody_needs_it_any_more(
    service: RunningService, adapters: Adapters, engine: Engine
) -> None:
    record = await _made(service, adapters, engine)
    adapter = await adapters.of_host(record.host_id)
    assert record.engine_name in {found.name for found in await adapter.list_tenants()}
    assert await prolong_scratch(record.uuid, _A_DAY)
    for _ in range(2):
        await end_scratch(record.uuid)
    assert not await prolong_scratch(record.uuid, _A_DAY)
    await until(lambda: _destroyed(record))
    assert record.engine_name not in {found.name for found in await adapter.list_tenants()}


async def _made(service: RunningService, adapters: Adapters, engine: Engine) -> DatabaseRecord:
    host = next(one for one in await registered_hosts(REGION) if one.engine is engine)
    async with transaction():
        record = await add_scratch(
            service.box, ScratchPurpose.PROOF, engine=engine, region=REGION, host_id=host.id, lasting=_A_DAY
        )
    adapter = await adapters.of_host(host.id)
    tenant = tenant_of(record, service.box)
    await adapter.create(tenant, EngineLimits(connections=record.connections))
    await adapter.revoke_access(tenant)
    return record


async def _destroyed(record: DatabaseRecord) -> bool:
    found = await records.find(record.uuid)
    assert found is not None, "the row stays for a while"
    return found.destroyed_at is not None
