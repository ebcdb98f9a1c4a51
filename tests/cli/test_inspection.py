"""`headwater databases` and `workflows`: what an operator sees, and never a password."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

from app.local.ports import LOOPBACK
from app.store.session import fetch
from tests.cli.command import Headwater
from tests.support.client import Caller
from tests.support.ports import free_port
from tests.support.service import RunningService
from tests.support.store import store
from tests.support.waiting import until


def of(service: RunningService) -> Headwater:
    return Headwater(
        {
            "CONTROL_DSN": service.control_dsn,
            "TEMPORAL_ADDRESS": service.temporal.address,
            "SECRET_KEYS": service.secret_keys,
            "HOME": str(service.folder),
        }
    )


async def test_a_database(service: RunningService, caller: Caller) -> None:
    made, headwater = await caller.created("mine"), of(service)

    async def both() -> list[dict[str, Any]]:
        """As between two measurements of its storage."""
        (line,) = [line for line in await headwater.json("databases", "list") if line["uuid"] == made["uuid"]]
        details = await headwater.json("databases", "inspect", made["uuid"])
        return [line, details] if line["storage_bytes"] == details["storage_bytes"] else []

    line, details = await until(both)
    assert line == {name: details[name] for name in line}
    assert (line["name"], line["team"], line["engine"], line["status"]) == ("mine", "Test User", "postgres", "active")
    assert line["address"] == f"{made['host']}:{made['port']}"
    assert (details["engine_name"], details["team_id"]) == (made["db_name"], caller.team_id)
    assert details["provisioned_at"] is not None
    assert details["deleted_at"] is None
    for arguments in (("list",), ("inspect", made["uuid"])):
        for text in (
            await headwater.text("databases", *arguments),
            json.dumps(await headwater.json("databases", *arguments)),
        ):
            assert made["db_password"] not in text
    assert made["uuid"] in await headwater.text("databases", "inspect", made["uuid"])


async def test_destroyed_databases_are_listed_on_request(service: RunningService, caller: Caller) -> None:
    made, headwater = await caller.created(), of(service)
    async with store(service.control_dsn):
        await fetch("UPDATE databases SET destroyed_at = now() WHERE uuid = $1", made["uuid"])
    listed = [{line["uuid"] for line in await headwater.json("databases", "list", *more)} for more in ((), ("--all",))]
    assert [made["uuid"] in uuids for uuids in listed] == [False, True]


async def test_renaming_deleting_and_bringing_back(service: RunningService, caller: Caller) -> None:
    made, headwater = await caller.created("before"), of(service)
    name = f"after-{uuid4().hex[:12]}"
    assert (await headwater.json("databases", "rename", made["uuid"], name))["name"] == name
    assert (await caller.get(f"/databases/{made['uuid']}")).json()["data"]["name"] == name
    assert "no valid name" in await headwater.refusal("databases", "rename", name, "No Name")
    # Nobody is there to say yes.
    assert f"Delete {name}" in await headwater.refusal("databases", "delete", name)
    assert (await caller.get(f"/databases/{made['uuid']}")).status_code == 200
    deleted = await headwater.json("databases", "delete", name, "--yes")
    assert (deleted["status"], deleted["revoked_at"] is not None) == ("deleted", True)
    assert deleted["destroy_at"] > deleted["deleted_at"]
    assert (await caller.get(f"/databases/{made['uuid']}")).status_code == 404
    for command in (("delete", name, "--yes"), ("rename", name, "late")):
        assert "No such database" in await headwater.refusal("databases", *command)
    assert (await headwater.json("databases", "undelete", name))["status"] == "active"
    assert "No such database" in await headwater.refusal("databases", "undelete", name)
    back = (await caller.get(f"/databases/{made['uuid']}")).json()["data"]
    assert (back["name"], back["db_password"]) == (name, made["db_password"])


async def test_protecting_and_expiring(service: RunningService, caller: Caller) -> None:
    made, headwater = await caller.created(), of(service)
    uuid = made["uuid"]
    assert (await headwater.json("databases", "protect", uuid))["deletion_protection"] is True
    assert "can't have expires_at too" in await headwater.refusal("databases", "expire", uuid, "2030-01-01T00:00:00Z")
    assert "is protected" in await headwater.refusal("databases", "delete", uuid, "--yes")
    assert (await headwater.json("databases", "inspect", uuid))["status"] == "active"
    assert (await headwater.json("databases", "unprotect", uuid))["deletion_protection"] is False
    expiring = await headwater.json("databases", "expire", uuid, "2030-01-01T01:00:00+01:00")
    assert expiring["expires_at"] == "2030-01-01T00:00:00Z"
    assert "no valid expires_at" in await headwater.refusal("databases", "expire", uuid, "soon")
    assert "5 minutes to 10 years" in await headwater.refusal("databases", "expire", uuid, "2001-01-01T00:00:00Z")
    assert (await headwater.json("databases", "expire", uuid, "never"))["expires_at"] is None
    await headwater.json("databases", "protect", uuid)
    deleted = await headwater.json("databases", "delete", uuid, "--yes", "--even-if-protected")
    (line,) = [line for line in await headwater.json("databases", "deleted") if line["uuid"] == uuid]
    assert (line["deleted_at"], line["destroy_at"]) == (deleted["deleted_at"], deleted["destroy_at"])
    assert uuid in {
        line["uuid"] for line in await headwater.json("databases", "deleted", "--team", str(caller.team_id))
    }
    assert "There is no team nobody." in await headwater.refusal("databases", "deleted", "--team", "nobody")
    assert (await headwater.json("databases", "undelete", uuid))["deletion_protection"] is True


async def test_no_such_database(service: RunningService) -> None:
    assert "No such database" in await of(service).refusal("databases", "inspect", str(uuid4()))
    assert "No such database" in await of(service).refusal("databases", "inspect", "nowhere")


async def test_nothing_to_list(headwater: Headwater) -> None:
    for command in ("databases", "hosts"):
        assert await headwater.json(command, "list") == []
        assert await headwater.text(command, "list") == "none\n"


async def test_open_workflows(service: RunningService, caller: Caller) -> None:
    made, headwater = await caller.created(), of(service)
    await caller.delete(f"/databases/{made['uuid']}")
    workflow_id = f"delete-database/{made['uuid']}"

    async def waiting() -> list[dict[str, Any]]:
        lines = await headwater.json("workflows", "open")
        assert all(line.keys() >= {"workflow_id", "type", "started_at"} for line in lines)
        return [line for line in lines if (line["workflow_id"], line["state"]) == (workflow_id, "waiting")]

    # The index of workflows follows with a little delay, and the answer came before the workflow's own task had ended.
    (line,) = await until(waiting)
    assert (line["type"], line["name"], line["team"]) == ("DeleteDatabase", made["name"], "Test User")
    assert "DeleteDatabase" in await headwater.text("workflows", "open", "--limit", "10000")
    assert workflow_id not in await headwater.text("workflows", "open", "--state", "stuck")


async def test_temporal_away(headwater: Headwater) -> None:
    away = headwater.with_settings(TEMPORAL_ADDRESS=f"{LOOPBACK}:{free_port()}")
    assert "Temporal can't be reached" in await away.refusal("workflows", "open")


async def test_our_own_database_away(headwater: Headwater) -> None:
    away = headwater.with_settings(CONTROL_DSN=f"postgresql://u:hunter2@{LOOPBACK}:{free_port()}/headwater")
    said = await away.refusal("databases", "list")
    assert "Our own database can't be reached" in said
    assert "hunter2" not in said


async def test_no_stack(headwater: Headwater, tmp_path: Path) -> None:
    lost = Headwater({"HOME": str(tmp_path)})
    said = await lost.refusal("databases", "list")
    assert "No stack runs" in said
    assert "headwater up" in said


async def test_settings_that_cannot_be(headwater: Headwater) -> None:
    assert "HEADWATER_COLOUR: no such setting" in await headwater.with_settings(COLOUR="red").refusal("hosts", "list")


async def test_the_installed_command(headwater: Headwater) -> None:
    program = Path(sys.executable).with_name("headwater")
    environ = {f"HEADWATER_{name}": value for name, value in headwater.settings.items()}
    process = await asyncio.create_subprocess_exec(
        str(program),
        "keys",
        "revoke",
        "404",
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environ,
    )
    out, err = await process.communicate()
    assert (process.returncode, out) == (1, b"")
    assert b"No such API key" in err
