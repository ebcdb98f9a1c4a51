"""The whole API against the model: a few hundred steps, or thousands when asked for."""

import os
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.model.calls import World
from tests.model.machine import ApiMachine
from tests.support.service import RunningService

BOUNDS = settings(database=None, suppress_health_check=list(HealthCheck), print_blob=True)
# A failure is shown as it was found: to make it smaller takes minutes on real servers, and is what the long form does.
SHORT = settings(BOUNDS, max_examples=5, stateful_step_count=50, derandomize=True, phases=[Phase.generate])
LONG = settings(BOUNDS, max_examples=int(os.environ.get("MODEL_RUNS", "100")), stateful_step_count=60)


@pytest_asyncio.fixture
async def world(service: RunningService) -> AsyncIterator[World]:
    """What is deleted is soon destroyed."""
    async with service.another_api(DELETION_GRACE_SECONDS="1", WEBHOOK_ALLOW_CIDRS="127.0.0.0/8") as (api, _):
        made = World(str(api.base_url), service.control_dsn)
        yield made
        made.http.close()


def drive(world: World, service: RunningService, bounds: settings) -> None:
    class Machine(ApiMachine):
        pass

    Machine.world = world
    Machine.engines = frozenset(["postgres"] + (["mysql"] if service.mysql else []))
    run_state_machine_as_test(Machine, settings=bounds)


def test_hundreds_of_steps(world: World, service: RunningService) -> None:
    drive(world, service, SHORT)


@pytest.mark.soak
def test_thousands_of_steps(world: World, service: RunningService) -> None:
    drive(world, service, LONG)
