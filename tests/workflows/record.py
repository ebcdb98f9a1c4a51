"""`python -m tests.workflows.record [NAME…]`: plays every scenario, or those named, anew and keeps its history under
histories/.

Run it when a workflow's steps change on purpose. What is deployed then can't replay what the old code began:
that takes `workflow.patched`, or workers of both versions until the old workflows have ended.
"""

import asyncio
import json
import logging
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from app.core.temporal import connect
from tests.support.temporal_server import running_temporal
from tests.workflows.scenarios import SCENARIOS
from tests.workflows.stage import play
from workers.search_attributes import register_search_attributes

FOLDER = Path(__file__).parent / "histories"
_OF_THIS_MACHINE = frozenset({"stackTrace", "identity"})
"""Fields that a replay doesn't read, and that tell where the history was recorded."""


async def record(names: Sequence[str]) -> None:
    for old in FOLDER.glob("*.json"):
        if old.stem in names or old.stem not in SCENARIOS:
            old.unlink()
    with tempfile.TemporaryDirectory() as folder:
        async with running_temporal(Path(folder)) as server:
            client = await connect(server.address, "default")
            await register_search_attributes(client)
            for name in names:
                scenario = SCENARIOS[name]
                played = await play(client, scenario, scenario.script())
                history = await played.handle.fetch_history()
                kept = _cleaned(json.loads(history.to_json()))
                (FOLDER / f"{name}.json").write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")


def _cleaned(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _cleaned(inner) for key, inner in value.items() if key not in _OF_THIS_MACHINE}
    return [_cleaned(inner) for inner in value] if isinstance(value, list) else value


if __name__ == "__main__":
    logging.disable()  # the scripts fail activities by the dozen
    asyncio.run(record(sys.argv[1:] or list(SCENARIOS)))
