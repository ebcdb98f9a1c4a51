"""`headwater operations`: what is under way, why, and where its workflow is."""

from uuid import UUID

import pytest

from app.store.session import execute
from tests.cli.command import Headwater
from tests.operations.support import active, provisioning
from tests.support.client import Caller
from tests.support.in_process import lone_api


@pytest.fixture
async def made(control_dsn: str) -> tuple[Caller, UUID, UUID]:
    """A team with a database that is being made, and another's that is there."""
    async with lone_api(control_dsn) as api:
        await api.add_host()
        caller, database = await provisioning(api, name="orders")
        _, other = await active(api, name="notes")
        await execute(
            "UPDATE operations SET deadline_at = now() - interval '1 s' FROM databases d"
            " WHERE d.id = database_id AND d.uuid = $1",
            database,
        )
    return caller, database, other


async def names(headwater: Headwater, *arguments: str) -> list[str]:
    return [line["database"] for line in await headwater.json("operations", "list", *arguments)]


async def test_which(headwater: Headwater, made: tuple[Caller, UUID, UUID]) -> None:
    caller, database, _ = made
    assert await names(headwater) == ["notes", "orders"]
    for narrowed in (
        ("--open",),
        ("--overdue",),
        ("--team", str(caller.team_id)),
        ("--database", "orders"),
        ("--database", str(database)),
        ("--status", "pending"),
    ):
        assert await names(headwater, *narrowed) == ["orders"]
    assert await names(headwater, "--type", "create", "--limit", "1") == ["notes"]
    assert await names(headwater, "--type", "delete") == []
    (line,) = await headwater.json("operations", "list", "--open")
    assert (line["overdue"], line["step"], line["database_uuid"]) == (True, "make", str(database))
    assert (await headwater.text("operations", "list", "--limit", "1")).endswith("1 of 2 operations\n")
    assert "There is no team nobody." in await headwater.refusal("operations", "list", "--team", "nobody")
    assert "Invalid value" in await headwater.refusal("operations", "list", "--type", "dance", exit_code=2)


async def test_one(headwater: Headwater, made: tuple[Caller, UUID, UUID]) -> None:
    caller, database, _ = made
    (line,) = await headwater.json("operations", "list", "--open")
    shown = await headwater.json("operations", "show", line["uuid"][:13])
    assert (shown["uuid"], shown["team_id"], shown["database"]) == (line["uuid"], caller.team_id, "orders")
    assert shown["requested_by"] == {"user_id": caller.user_id, "api_key_id": caller.key_id}
    assert shown["temporal_url"] is None
    linked = headwater.with_settings(TEMPORAL_UI_URL="https://temporal.example/", TEMPORAL_NAMESPACE="a b")
    url = (await linked.json("operations", "show", line["uuid"]))["temporal_url"]
    assert url.startswith("https://temporal.example/namespaces/a%20b/workflows/")
    assert url.endswith(str(database))
    assert "make" in await headwater.text("operations", "show", line["uuid"])


async def test_none(headwater: Headwater, made: tuple[Caller, UUID, UUID]) -> None:
    _, database, _ = made
    assert "No such operation" in await headwater.refusal("operations", "show", str(database))
    assert "No such operation" in await headwater.refusal("operations", "show", "zzzz")
    assert "No such database" in await headwater.refusal("operations", "list", "--database", "zzzz")


async def test_cancelling(headwater: Headwater, made: tuple[Caller, UUID, UUID]) -> None:
    _, database, _ = made
    (line,) = await headwater.json("operations", "list", "--open")
    asked = await headwater.run("operations", "cancel", line["uuid"], given="n\n")
    assert (asked.exit_code, "create of orders" in asked.stderr) == (1, True)
    assert (await headwater.json("operations", "show", line["uuid"]))["status"] == "pending"
    cancelled = await headwater.json("operations", "cancel", line["uuid"], "--yes")
    assert (cancelled["status"], cancelled["reason"]["code"]) == ("cancelled", "cancelled")
    # What is left of it has an operation of its own, for as long as it takes.
    (deletion,) = await headwater.json("operations", "list", "--open", "--database", str(database))
    assert deletion["type"] == "delete"
    assert "it is cancelled" in await headwater.refusal("operations", "cancel", line["uuid"], "--yes")


async def test_retrying(headwater: Headwater, made: tuple[Caller, UUID, UUID]) -> None:
    _, _, other = made
    (line,) = await headwater.json("operations", "list", "--open")
    assert (await headwater.json("operations", "retry", line["uuid"]))["status"] == "pending"
    (ended,) = await headwater.json("operations", "list", "--database", str(other))
    assert "has ended" in await headwater.refusal("operations", "retry", ended["uuid"])
