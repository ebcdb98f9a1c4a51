"""Nothing is promised by an interface, implemented, registered or recorded alone."""

import base64
import inspect
import json
from collections.abc import Iterable
from types import ModuleType
from typing import Any

from temporalio.client import Client

from activities.control import ControlActivitiesOnStore
from activities.engine import EngineActivitiesOnHosts
from app.contracts import databases
from app.contracts.control import ControlActivities
from app.contracts.engine import EngineActivities
from app.contracts.queues import CONTROL_QUEUE, engine_queue
from app.core.secrets import SecretBox, new_key_setting
from app.core.temporal import connect
from app.hosts.adapters import Adapters
from tests.workflows.record import FOLDER
from workers.runner import build_worker
from workflows.served import WORKFLOWS

_INTERFACES = ((ControlActivities, ControlActivitiesOnStore), (EngineActivities, EngineActivitiesOnHosts))


def _workflow_name(kind: Any) -> str:
    return str(kind.__temporal_workflow_definition.name)


def _defined_in(module: ModuleType, mark: str) -> list[Any]:
    own = (kind for _, kind in inspect.getmembers(module, inspect.isclass) if kind.__module__ == module.__name__)
    return [kind for kind in own if hasattr(kind, mark)]


def _activity_names(kind: type) -> set[str]:
    return _names(getattr(kind, name) for name in dir(kind) if not name.startswith("_"))


def _names(methods: Iterable[Any]) -> set[str]:
    return {m.__temporal_activity_definition.name for m in methods if hasattr(m, "__temporal_activity_definition")}


def _recorded() -> tuple[set[str], set[str]]:
    """The names of the workflows and of the activities in the histories."""
    workflows, activities = set(), set()
    for path in FOLDER.glob("*.json"):
        for event in json.loads(path.read_text())["events"]:
            if started := event.get("workflowExecutionStartedEventAttributes"):
                workflows.add(started["workflowType"]["name"])
            if scheduled := event.get("activityTaskScheduledEventAttributes"):
                activities.add(scheduled["activityType"]["name"])
            for payload in _local_activity(event):
                activities.add(json.loads(base64.b64decode(payload["data"]))["activity_type"])
    return workflows, activities


def _local_activity(event: Any) -> list[Any]:
    return list(event.get("markerRecordedEventAttributes", {}).get("details", {}).get("data", {}).get("payloads", []))


def test_every_workflow_of_the_contract_has_one_implementation() -> None:
    promised = _defined_in(databases, "__temporal_workflow_definition")
    assert sorted(map(_workflow_name, promised)) == sorted(map(_workflow_name, WORKFLOWS))
    for interface in promised:
        assert any(issubclass(kind, interface) for kind in WORKFLOWS)


def test_every_activity_of_the_contract_has_one_implementation() -> None:
    for interface, implementation in _INTERFACES:
        assert not implementation.__abstractmethods__
        assert _activity_names(interface) == _activity_names(implementation)


async def test_the_workers_register_them_all(client: Client) -> None:
    box = SecretBox.from_setting(new_key_setting())
    # A connection of its own: these workers never run, and one connection takes one worker a queue.
    client = await connect(client.service_client.config.target_host, client.namespace)
    on_control = build_worker(client, CONTROL_QUEUE, box, Adapters(box)).config()
    on_engines = build_worker(client, engine_queue("test-1"), box, Adapters(box)).config()
    assert tuple(on_control["workflows"]) == WORKFLOWS
    assert not on_engines["workflows"]
    names = [_names(config["activities"]) for config in (on_control, on_engines)]
    assert names == [_activity_names(interface) for interface, _ in _INTERFACES]


def test_every_workflow_and_every_activity_is_in_a_recorded_history() -> None:
    workflows, activities = _recorded()
    assert workflows == set(map(_workflow_name, WORKFLOWS))
    assert activities == {name for interface, _ in _INTERFACES for name in _activity_names(interface)}
