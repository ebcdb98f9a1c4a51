"""What a secret variable holds is in the database that it was meant for, and nowhere else."""

import json

import pytest

from app.contracts.queues import apply_workflow_id
from app.core.temporal import connect
from app.store.session import fetch
from tests.applications.support import ENGINES, ask, ended, seen
from tests.support.client import Caller
from tests.support.service import RunningService
from tests.support.store import store

SECRET = "Hush-71d0c5e1"
DEFINITIONS = {"word": {"type": "string", "secret": True}, "number": {"type": "integer", "secret": True, "default": 8}}
SCRIPT = {
    # The engine's own message quotes the value.
    "postgres": "CREATE TABLE kept (word varchar(40), n integer); INSERT INTO kept VALUES ({{word}}, {{word}});",
    "mysql": "CREATE TABLE kept (n integer); INSERT INTO kept VALUES ({{word}});",
}


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_secret_value(service: RunningService, caller: Caller, engine: str) -> None:
    database = await caller.created(db_type=engine)
    values = {"word": SECRET}
    asked = await ask(
        caller, database, SCRIPT[engine], definitions=DEFINITIONS, variables=values, wait=False, timeout=60
    )
    after = await ended(caller, asked)
    assert after["status"] == "failed"
    assert after["variable_values"]["word"] != SECRET
    failed = after["execution_log"][1]
    assert "***" in failed["error"]["message"]
    assert "***" in failed["sql"]
    client = await connect(service.temporal.address, "default")
    history = await client.get_workflow_handle(apply_workflow_id(after["id"], dry_run=False)).fetch_history()
    async with store(service.control_dsn):
        ours = [
            str(dict(row))
            for table in ("blueprint_applications", "blueprint_statements", "idempotency_keys", "workflow_starts")
            for row in await fetch(f"SELECT * FROM {table}")
        ]
        [row] = await fetch("SELECT values_sealed FROM blueprint_applications WHERE id = $1", after["id"])
    assert row["values_sealed"] is None, "forgotten at the end"
    logs = [path.read_text() for path in service.folder.glob("*.log")]
    for place in (json.dumps(after), json.dumps(await seen(caller, asked)), history.to_json(), *ours, *logs):
        assert SECRET not in place


async def test_a_message_of_millions_of_characters_and_many_secrets(caller: Caller) -> None:
    """Searched whole for each of them, it would keep the worker from everything else for many minutes."""
    database = await caller.created(db_type="postgres")
    definitions = {f"s{number}": {"type": "string", "secret": True} for number in range(100)}
    script = (
        "CREATE FUNCTION loud(told text) RETURNS int LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION '%', repeat(told, 1000000); END $$;\n"
        "SELECT loud({{s0}});"
    )
    values = {name: f"{SECRET}-{name}" for name in definitions}
    asked = await ask(caller, database, script, definitions=definitions, variables=values, wait=False)
    after = await ended(caller, asked)
    failed = after["execution_log"][1]
    assert failed["error"]["message"].endswith("…")
    assert SECRET not in str(after)
