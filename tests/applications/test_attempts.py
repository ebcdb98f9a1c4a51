"""Attempts at an application, taken one at a time by the test, at moments of its choice."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import pytest
from temporalio.exceptions import ApplicationError

from activities.applications import ApplicationActivitiesOnHosts
from app.contracts.applications import ApplicationStatus
from app.contracts.restores import SLOTS_TAKEN
from app.engines.base import Tenant
from app.engines.scripts import ScriptSession
from app.store.session import fetch
from tests.applications.support import TWO_TABLES, ask, seen, tables
from tests.credentials.stepped import Stepped
from tests.quotas.bench import REGION, bench
from tests.servers import RunningServer
from tests.support.answers import data_of


async def test_a_rotation_while_the_script_is_prepared(
    control_dsn: str, postgres_server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The role that the attempt has read may log in no more."""
    async with bench(control_dsn, postgres_server) as on_bench:
        stepped = Stepped(on_bench, await on_bench.api.caller())
        made = await stepped.created("postgres")
        application = await ask(stepped.caller, made, TWO_TABLES, wait=False)
        adapter = await on_bench.adapters.of_host((await on_bench.record(made)).host_id)
        open_session = adapter.script_session
        logins: list[str] = []
        rotations: list[Any] = []

        @asynccontextmanager
        async def rotated_before(tenant: Tenant, seconds: float) -> AsyncIterator[ScriptSession]:
            logins.append(tenant.login or tenant.name)
            if not rotations:
                path = f"/databases/{made['uuid']}/credential_rotations"
                async with stepped.asked("POST", path, {"overlap_seconds": 0}) as waiting:
                    rotations.append(data_of(await stepped.answered(waiting, made)))
            async with open_session(tenant, seconds) as session:
                yield session

        monkeypatch.setattr(adapter, "script_session", rotated_before)
        steps = ApplicationActivitiesOnHosts(on_bench.plans, on_bench.box, on_bench.adapters)
        result = await steps.apply_blueprint(application["id"])
        after = await seen(stepped.caller, application)
        assert result.status is ApplicationStatus.COMPLETED, after
        [rotation] = rotations
        assert logins == [made["db_name"], rotation["db_username"]]
        assert await tables({**made, "connection_string": rotation["connection_string"]}) == ["a", "b"]


@pytest.mark.parametrize(("began", "milliseconds"), [("now() - interval '30 days'", 2**31 - 1), ("NULL", None)])
async def test_one_ends_however_long_ago_it_began(
    control_dsn: str, postgres_server: RunningServer, began: str, milliseconds: int | None
) -> None:
    """Its host may have been away for weeks; one that nothing of was begun took no time."""
    async with bench(control_dsn, postgres_server) as on_bench:
        caller = await on_bench.api.caller()
        made = (await caller.create(region=REGION)).json()["data"]
        await on_bench.steps.create_database(UUID(made["uuid"]))
        application = await ask(caller, made, TWO_TABLES, wait=False)
        await fetch(f"UPDATE blueprint_applications SET started_at = {began} WHERE id = $1", application["id"])
        steps = ApplicationActivitiesOnHosts(on_bench.plans, on_bench.box, on_bench.adapters)
        await steps.abandon_application(application["id"])
        after = await seen(caller, application)
        assert (after["status"], after["total_duration_ms"]) == ("failed", milliseconds)


async def test_a_worker_without_a_free_slot_blames_no_engine(control_dsn: str, postgres_server: RunningServer) -> None:
    async with bench(control_dsn, postgres_server) as on_bench:
        caller = await on_bench.api.caller()
        made = (await caller.create(region=REGION)).json()["data"]
        await on_bench.steps.create_database(UUID(made["uuid"]))
        application = await ask(caller, made, TWO_TABLES, wait=False)
        steps = ApplicationActivitiesOnHosts(on_bench.plans, on_bench.box, on_bench.adapters, max_concurrent=0)
        with pytest.raises(ApplicationError) as refused:
            await steps.apply_blueprint(application["id"])
        assert (refused.value.type, refused.value.non_retryable) == (SLOTS_TAKEN, True)
