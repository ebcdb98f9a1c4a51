"""Determinism: what the workflows did when their histories were recorded, they do again."""

import json

import pytest
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer
from temporalio.workflow import NondeterminismError

from app.core.temporal import DATA_CONVERTER
from tests.workflows.misfits import Changed
from tests.workflows.record import FOLDER
from tests.workflows.scenarios import SCENARIOS
from workers.runner import sandbox
from workflows.registry import BACKUP_WORKFLOWS, CONTROL_WORKFLOWS, ENGINE_WORKFLOWS, WEBHOOK_WORKFLOWS

RECORDED = sorted(path.stem for path in FOLDER.glob("*.json"))
EARLIER = sorted(path.relative_to(FOLDER).with_suffix("").as_posix() for path in FOLDER.glob("*/*.json"))
"""Of releases whose runs may go on under this version, in a folder for each, where their steps were others."""


def _history(name: str) -> WorkflowHistory:
    return WorkflowHistory.from_json(name, (FOLDER / f"{name}.json").read_text())


def _replayer(workflows: tuple[type, ...]) -> Replayer:
    return Replayer(workflows=workflows, workflow_runner=sandbox(), data_converter=DATA_CONVERTER)


@pytest.mark.parametrize("name", [*RECORDED, *EARLIER])
async def test_a_recorded_history_replays(name: str) -> None:
    every = (*CONTROL_WORKFLOWS, *ENGINE_WORKFLOWS, *BACKUP_WORKFLOWS, *WEBHOOK_WORKFLOWS)
    await _replayer(every).replay_workflow(_history(name))


def test_every_scenario_is_recorded_and_nothing_else() -> None:
    assert sorted(SCENARIOS) == RECORDED, "python -m tests.workflows.record"


def test_the_histories_tell_nothing_of_the_machine_they_were_made_on() -> None:
    for name in RECORDED:
        text = json.dumps(json.loads((FOLDER / f"{name}.json").read_text()))
        assert "site-packages" not in text
        assert "identity" not in text


async def test_a_changed_workflow_does_not_replay() -> None:
    with pytest.raises(NondeterminismError):
        await _replayer((Changed,)).replay_workflow(_history("limits-in-force"))
