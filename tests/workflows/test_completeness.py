"""Nothing is declared by an interface, implemented, registered or recorded alone."""

import base64
import importlib
import inspect
import json
from collections.abc import Iterable
from pkgutil import iter_modules
from typing import Any

from temporalio.client import Client

from app import contracts
from app.contracts.queues import CONTROL_QUEUE, WEBHOOK_QUEUE, backup_queue, engine_queue, restore_queue
from app.core.temporal import connect
from tests.support.worker_dependencies import tools
from tests.workflows.record import FOLDER
from workers.queues import queue_config
from workers.runner import build_worker
from workflows.registry import BACKUP_WORKFLOWS, CONTROL_WORKFLOWS, ENGINE_WORKFLOWS, WEBHOOK_WORKFLOWS

_QUEUES = (CONTROL_QUEUE, WEBHOOK_QUEUE, engine_queue("test-1"), backup_queue("test-1"), restore_queue("test-1"))
_TWICE = ["take_backup"]
"""On two queues: one that a restore waits for has the restore's."""
_ALL = (*CONTROL_WORKFLOWS, *ENGINE_WORKFLOWS, *BACKUP_WORKFLOWS, *WEBHOOK_WORKFLOWS)
_ACTIVITY, _WORKFLOW = "__temporal_activity_definition", "__temporal_workflow_definition"


def _workflow_name(kind: Any) -> str:
    return str(kind.__temporal_workflow_definition.name)


def _interfaces() -> list[Any]:
    """Every class of the contracts."""
    modules = (
        importlib.import_module(f"{contracts.__name__}.{found.name}") for found in iter_modules(contracts.__path__)
    )
    return [
        kind
        for module in modules
        for _, kind in inspect.getmembers(module, inspect.isclass)
        if kind.__module__ == module.__name__
    ]


def _declared_workflows() -> list[Any]:
    return [kind for kind in _interfaces() if hasattr(kind, _WORKFLOW)]


def _declared_activities() -> set[str]:
    return {name for kind in _interfaces() for name in _activity_names(kind)}


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
    declared = _declared_workflows()
    assert sorted(map(_workflow_name, declared)) == sorted(map(_workflow_name, _ALL))
    for interface in declared:
        assert any(issubclass(kind, interface) for kind in _ALL)


async def test_every_activity_of_the_contract_is_served_on_one_queue(client: Client) -> None:
    # A connection of its own: these workers never run, and one connection takes one worker a queue.
    client = await connect(client.service_client.config.target_host, client.namespace)
    registered = []
    for queue in _QUEUES:
        config = build_worker(client, queue, tools()).config()
        assert tuple(config["workflows"]) == queue_config(queue).workflows
        registered += sorted(_names(config["activities"]))
    assert sorted(registered) == sorted([*_declared_activities(), *_TWICE])


def test_every_workflow_and_every_activity_is_in_a_recorded_history() -> None:
    workflows, activities = _recorded()
    assert workflows == set(map(_workflow_name, _ALL))
    assert activities == _declared_activities()
