"""Workflow code does nothing that a replay would do otherwise: read as text, and tried in the sandbox."""

import ast
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from temporalio.client import Client, WorkflowFailureError
from temporalio.worker import Worker

import workflows
from app.contracts.queues import CONTROL_QUEUE
from tests.support.waiting import LIMIT_SECONDS
from tests.support.worker_dependencies import tools
from tests.workflows.misfits import DEEDS, Wayward
from workers.runner import build_worker, sandbox

_FILES = sorted(Path(workflows.__file__).parent.glob("*.py"))
_MODULES = {"time", "random", "os", "secrets", "socket", "threading", "app.core", "app.store"}
_CALLS = {"datetime.now", "datetime.utcnow", "datetime.today", "uuid.uuid4", "asyncio.wait", "asyncio.as_completed"}


def _faults(text: str) -> list[str]:
    """What of this code a replay might do otherwise."""
    return [fault for node in ast.walk(ast.parse(text)) for fault in _faults_of(node)]


def _faults_of(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [f"imports {name.name}" for name in node.names if name.name in _MODULES | {"uuid"}]
    if isinstance(node, ast.ImportFrom):
        names = {name.name for name in node.names}
        module = node.module or ""
        forbidden = any(module == one or module.startswith(f"{one}.") for one in _MODULES)
        return [f"imports {module}"] if forbidden or (module == "uuid" and names != {"UUID"}) else []
    if isinstance(node, ast.Attribute | ast.Name) and ast.unparse(node) in _CALLS:
        return [f"uses {ast.unparse(node)}"]
    iterated = node.iter if isinstance(node, ast.For | ast.comprehension) else None
    if isinstance(iterated, ast.Set | ast.SetComp):
        return ["goes through a set"]
    if isinstance(iterated, ast.Call) and ast.unparse(iterated.func) in ("set", "frozenset"):
        return ["goes through a set"]
    return []


@pytest.mark.parametrize("path", _FILES, ids=lambda path: path.stem)
def test_workflow_code_is_free_of_what_changes_from_run_to_run(path: Path) -> None:
    assert _faults(path.read_text()) == []


@pytest.mark.parametrize(
    "text",
    [
        "import time",
        "import uuid",
        "from uuid import uuid4",
        "from app.core.settings import Settings",
        "from random import choice",
        "datetime.now(UTC)",
        "await asyncio.wait(tasks)",
        "for one in {1, 2}: pass",
        "[one for one in set(many)]",
    ],
)
def test_the_reader_finds_what_it_looks_for(text: str) -> None:
    assert _faults(text)


@pytest.mark.parametrize("deed", DEEDS)
async def test_the_sandbox_refuses_it(client: Client, deed: str) -> None:
    queue = f"wayward-{uuid4()}"
    async with Worker(
        client,
        task_queue=queue,
        workflows=[Wayward],
        workflow_runner=sandbox(),
        workflow_failure_exception_types=[Exception],
        build_id="wayward",
    ):
        with pytest.raises(WorkflowFailureError) as refused:
            await client.execute_workflow(
                Wayward.run, deed, id=queue, task_queue=queue, execution_timeout=timedelta(seconds=LIMIT_SECONDS)
            )
    assert "Cannot access" in str(refused.value.cause)


async def test_the_control_worker_uses_that_sandbox(client: Client) -> None:
    # A worker holds its queue from when it is built until it has run.
    async with build_worker(client, CONTROL_QUEUE, tools()) as worker:
        assert type(worker.config()["workflow_runner"]) is type(sandbox())
