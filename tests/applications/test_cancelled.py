"""An application that was cancelled runs nothing, whoever begins another attempt at it."""

from uuid import UUID

from activities.applications import ApplicationActivitiesOnHosts
from app.operations.kinds import OperationStatus
from app.provisioning import operation_service
from app.provisioning.cancelling import CANCELLATIONS
from app.store.session import fetch, transaction
from tests.applications.support import TWO_TABLES, ask, seen, tables
from tests.operations.support import code_of, latest
from tests.quotas.bench import REGION, bench
from tests.servers import RunningServer


async def test_the_row_says_that_it_was_cancelled(control_dsn: str, postgres_server: RunningServer) -> None:
    """A workflow that was begun anew doesn't."""
    async with bench(control_dsn, postgres_server) as on_bench:
        caller = await on_bench.api.caller()
        made = (await caller.create(region=REGION)).json()["data"]
        database = UUID(made["uuid"])
        await on_bench.steps.create_database(database)
        application = await ask(caller, made, TWO_TABLES, wait=False)
        # An attempt has begun, and its host was away.
        await fetch("UPDATE blueprint_applications SET status = 'running' WHERE id = $1", application["id"])
        async with transaction():
            operation = await latest(database)
            await operation_service.cancel_any(on_bench.plans, CANCELLATIONS, operation.uuid)
        steps = ApplicationActivitiesOnHosts(on_bench.plans, on_bench.box, on_bench.adapters)
        await steps.apply_blueprint(application["id"])
        after = await seen(caller, application)
        assert (after["status"], after["statements_succeeded"]) == ("failed", 0)
        assert "cancelled before it had changed anything" in after["error_message"]
        assert await tables(made) == []
        operation = await latest(database)
        assert (operation.status, code_of(operation)) == (OperationStatus.CANCELLED, "cancelled")
