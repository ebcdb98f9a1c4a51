"""Workflows whose history grows long go on in a new run, from where they were."""

from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio
from temporalio.client import Client

from app.contracts.engine import STORE_UNAVAILABLE
from app.contracts.webhooks import DeliverWebhook, EndDeliveries, EndDeliveriesInput, WaitingDeliveries
from app.core.temporal import connect
from app.local import temporal
from tests import servers
from tests.workflows.fakes import Script, fails
from tests.workflows.scenario import Scenario
from tests.workflows.stage import Played, play
from tests.workflows.webhook_scenarios import ATTEMPT, DELIVER, ROUND

LISTED = "list_ended_deliveries"


@pytest_asyncio.fixture
async def hurried(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Client]:
    """Of a server that finds a history long after ten events, where others do after 4,096."""
    monkeypatch.setitem(temporal._DYNAMIC_CONFIG, "limit.historyCount.suggestContinueAsNew", "10")
    async with servers.temporal(tmp_path_factory.mktemp("hurried")) as server:
        yield await connect(server.address, "default")


async def _runs(client: Client, played: Played) -> int:
    """How many runs followed each other."""
    count, run = 1, (await played.handle.describe()).run_id
    while True:
        history = await client.get_workflow_handle(played.handle.id, run_id=run).fetch_history()
        run = history.events[0].workflow_execution_started_event_attributes.continued_execution_run_id
        if not run:
            return count
        count += 1


def _page(last: int | None) -> Callable[[], WaitingDeliveries]:
    return lambda: WaitingDeliveries(last=last, workflow_ids=["deliver-webhook/gone/3"])


async def test_a_revocation_with_many_deliveries(hurried: Client) -> None:
    script = Script({LISTED: [_page(7), _page(9), _page(None)]})
    scenario = Scenario(EndDeliveries, EndDeliveriesInput(endpoint=3, team_id=7), lambda: script, [LISTED] * 3)
    played = await play(hurried, scenario, script)
    assert [page.after for page in script.arguments] == [0, 7, 9]
    assert played.details.startswith("3 deliveries were told")
    assert await _runs(hurried, played) > 1


async def test_a_delivery_while_our_own_side_fails(hurried: Client) -> None:
    script = Script({ATTEMPT: [fails(STORE_UNAVAILABLE)] * (1 + ROUND)})
    played = await play(hurried, Scenario(DeliverWebhook, DELIVER, lambda: script, [ATTEMPT]), script)
    assert script.calls == [ATTEMPT] * (1 + ROUND + 1)
    assert played.details == "Delivered with attempt 1."
    assert await _runs(hurried, played) == 2
