"""What is still under way for a host when an operator removes it."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from uuid import UUID

import pytest
import pytest_asyncio
from temporalio.exceptions import ApplicationError

from activities.applications import ApplicationActivitiesOnHosts
from app.contracts.applications import ApplicationStatus
from app.contracts.engine import HOST_REMOVED, NOT_WANTED, RemnantRef
from app.contracts.reconcile import HostRef
from app.engines.base import EngineAdapter
from app.hosts.adapters import Adapters
from app.hosts.changes import remove_host
from app.hosts.records import registered_hosts
from app.store.session import fetch, transaction
from app.upkeep.reconcile import findings
from app.upkeep.reconcile.findings import Violation
from app.upkeep.reconcile.service import reconcile_host
from tests.applications.support import ask
from tests.quotas.bench import REGION, Bench, bench
from tests.servers import RunningServer

NOW = datetime(2026, 11, 3, tzinfo=UTC)


@pytest_asyncio.fixture
async def on_bench(control_dsn: str, postgres_server: RunningServer) -> AsyncIterator[Bench]:
    """With one host."""
    async with bench(control_dsn, postgres_server) as made:
        yield made


async def _move_away(on_bench: Bench, database: UUID) -> int:
    """As an evacuation does in our own database. Returns the host that it was on."""
    (old,) = await registered_hosts(REGION)
    other = await on_bench.api.add_host(region="elsewhere-1")
    await fetch("UPDATE databases SET host_id = $2, remote_since = NULL WHERE uuid = $1", database, other)
    return old.id


async def _destroy(on_bench: Bench, database: UUID) -> int:
    """Returns the host that it was on."""
    (old,) = await registered_hosts(REGION)
    await fetch(
        "UPDATE databases SET status = 'deleted', deleted_at = now(), revoked_at = now(), destroy_at = now()"
        " WHERE uuid = $1",
        database,
    )
    await on_bench.steps.destroy_database(database)
    await fetch("UPDATE databases SET destroyed_at = now() WHERE uuid = $1", database)
    return old.id


async def _remove(host_id: int) -> None:
    async with transaction():
        await remove_host(host_id)


@pytest.mark.parametrize("closing", [True, False])
async def test_nothing_is_left_to_remove_from_it(on_bench: Bench, closing: bool) -> None:
    made = await on_bench.create()
    database = UUID(made["uuid"])
    old = await _move_away(on_bench, database)
    await _remove(old)
    remnant = RemnantRef(database=database, host_id=old, name=made["db_name"])
    await (on_bench.steps.close_remnant(remnant) if closing else on_bench.steps.remove_remnant(remnant))


async def test_a_deletion_under_way_ends(on_bench: Bench) -> None:
    """Its database was given up with the host."""
    database = UUID((await on_bench.create())["uuid"])
    await _remove(await _destroy(on_bench, database))
    await on_bench.steps.revoke_access(database)
    await on_bench.steps.destroy_database(database)


async def test_a_create_that_comes_too_late_is_told_so(on_bench: Bench) -> None:
    database = UUID((await on_bench.create())["uuid"])
    await _remove(await _destroy(on_bench, database))
    with pytest.raises(ApplicationError) as refused:
        await on_bench.steps.create_database(database)
    assert refused.value.type == NOT_WANTED


async def test_a_script_ends_with_its_database(on_bench: Bench) -> None:
    caller = await on_bench.api.caller()
    made = (await caller.create(region=REGION)).json()["data"]
    database = UUID(made["uuid"])
    await on_bench.steps.create_database(database)
    application = await ask(caller, made, "CREATE TABLE a (id integer)", wait=False)
    # Under way, and its worker has died.
    await fetch(
        "UPDATE blueprint_applications SET status = 'running', session_reference = 'lost' WHERE id = $1",
        application["id"],
    )
    await _remove(await _destroy(on_bench, database))
    steps = ApplicationActivitiesOnHosts(on_bench.plans, on_bench.box, on_bench.adapters)
    assert (await steps.abandon_application(application["id"])).status is ApplicationStatus.FAILED
    [row] = await fetch("SELECT error_message FROM blueprint_applications WHERE id = $1", application["id"])
    assert "Nothing of it is left" in row["error_message"]


async def test_a_step_that_had_read_the_row_before_is_repeated_and_blames_no_host(on_bench: Bench) -> None:
    """The next attempt reads where the database lies by now."""
    database = UUID((await on_bench.create())["uuid"])
    (old,) = await registered_hosts(REGION)
    await fetch("UPDATE engine_hosts SET removed_at = now() WHERE id = $1", old.id)
    try:
        with pytest.raises(ApplicationError) as failed:
            await on_bench.steps.apply_limits(database)
    finally:
        await fetch("UPDATE engine_hosts SET removed_at = NULL WHERE id = $1", old.id)
    assert (failed.value.type, failed.value.non_retryable) == (HOST_REMOVED, False)


async def test_a_run_that_listed_it_before_passes_over_it(on_bench: Bench) -> None:
    database = UUID((await on_bench.create())["uuid"])
    (host,) = await registered_hosts(REGION)
    await _destroy(on_bench, database)
    on_bench.adapters = _Removing(on_bench.box)
    measured = await on_bench.enforce(NOW)
    assert (measured.databases, measured.unreachable) == (0, ())
    assert await registered_hosts(REGION) == []
    ref = HostRef(host_id=host.id, engine=host.engine, region=host.region, address=host.address)
    step = await reconcile_host(on_bench.plans, on_bench.box, on_bench.adapters, ref, None)
    assert (step.findings, step.repairs) == ({}, [])


async def test_a_run_that_was_at_it_leaves_no_finding(on_bench: Bench) -> None:
    (host,) = await registered_hosts(REGION)
    await _remove(host.id)
    found = Violation(rule="host_unreachable", subject=host.address, detail="It doesn't answer.")
    await findings.write(host.id, [found], {}, complete=False)
    assert await fetch("SELECT rule FROM findings WHERE host_id = $1", host.id) == []


class _Removing(Adapters):
    """An operator removes each host right before it is asked for."""

    async def of_host(self, host_id: int) -> EngineAdapter:
        if await registered_hosts(REGION):
            await _remove(host_id)
        return await super().of_host(host_id)
