"""One of everything that the console's pages show: what tests of every page look at.

Texts that somebody entered are markup, which no page may take for such.
"""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from app.store.session import fetch, transaction
from app.upkeep.reconcile.findings import Violation, write
from app.webhooks import records as webhooks
from app.webhooks.egress.sender import AttemptResult
from tests.applications.support import applied
from tests.console.steps import sampled
from tests.support.answers import data_of
from tests.support.client import OPERATOR_TOO, Caller
from tests.support.model_server import script, sql
from tests.support.service import RunningService
from tests.support.store import store
from tests.support.waiting import until

MARKUP = "<img src=x onerror=document.body.dataset.owned=1>"
BLUEPRINT = "CREATE TABLE {{table}} (id integer PRIMARY KEY, note text);\nINSERT INTO {{table}} VALUES (1, 'first');\n"
VARIABLES = {"table": {"type": "identifier", "default": "notes"}}


@dataclass(frozen=True)
class World:
    owner: Caller
    """Of the team, and an operator."""
    viewer: Caller
    """Who may look at what the team has, and nothing more."""
    database: dict[str, Any]
    parts: dict[str, dict[str, Any]]
    """The values of a route's parameters, by the beginning of the route."""

    def address(self, route: str) -> str:
        """Of a route of `pages/index.js`, such as `/databases/:uuid/users`."""
        for beginning, values in self.parts.items():
            if route.startswith(beginning):
                for name, value in values.items():
                    route = route.replace(f":{name}", str(value))
        assert ":" not in route, f"nothing is known for {route}"
        return route


async def new_world(service: RunningService) -> World:
    """About five seconds, most of them for the backup."""
    owner, viewer = await service.caller(scopes=OPERATOR_TOO), await service.caller()
    await _enter(service, owner, viewer)
    database = await owner.created("orders", labels={"env": "production", "note": MARKUP})
    at = f"/databases/{database['uuid']}"
    await owner.post(f"{at}/backups", {"description": MARKUP})
    await applied(owner, database, BLUEPRINT, definitions=VARIABLES)
    application = await applied(owner, database, BLUEPRINT, definitions=VARIABLES)
    blueprint = application["blueprint_uuid"]
    data_of(await owner.patch(f"/blueprints/{blueprint}", {"name": MARKUP, "sql_content": BLUEPRINT + "-- changed"}))
    data_of(await owner.post(f"{at}/users", {"name": "reporting", "access": "read_only"}), 201)
    question = {"database_uuid": database["uuid"], "query": script(sql(f"SELECT '{MARKUP}' AS word"))}
    assert (await owner.post("/query_executions", question)).status_code == 200
    endpoint = data_of(
        await owner.post("/webhook_endpoints", {"url": f"https://hooks.example.com/{'long/' * 12}"}), 201
    )
    data_of(await owner.post(f"/teams/{owner.team_id}/invitations", {"role": "viewer"}), 201)
    deleted = await owner.created("left")
    await owner.delete(f"/databases/{deleted['uuid']}")
    await sampled(service, UUID(database["uuid"]))
    async with store(service.control_dsn), transaction():
        answer = AttemptResult(code=500, error="The endpoint answered 500.", body=MARKUP, duration=0.2)
        delivery = await webhooks.insert_ping(
            "evt_1", endpoint["id"], '{"event": "ping", "timestamp": "2026-11-23T00:00:00Z", "data": {}}', answer
        )

    async def backed_up() -> bool:
        backups = data_of(await owner.get(f"{at}/backups"))
        return any(one["status"] == "completed" for one in backups)

    await until(backed_up)
    operation = data_of(await owner.get(f"/operations?database_uuid={database['uuid']}"))[0]
    return World(
        owner,
        viewer,
        database,
        {
            "/databases/": {"uuid": database["uuid"]},
            "/operations/": {"uuid": operation["uuid"]},
            "/blueprints/": {"uuid": blueprint, "id": application["id"]},
            "/webhook_endpoints/": {"id": endpoint["id"]},
            "/webhooks/": {"id": endpoint["id"], "delivery": delivery},
            "/keys/": {"id": owner.key_id},
            "/teams/": {"id": owner.team_id},
        },
    )


async def _enter(service: RunningService, owner: Caller, viewer: Caller) -> None:
    """Both in one team."""
    async with store(service.control_dsn):
        await fetch("UPDATE users SET name = $2 WHERE id = $1", owner.user_id, MARKUP)
        await fetch(
            "UPDATE memberships SET team_id = $2, role = 'viewer' WHERE user_id = $1", viewer.user_id, owner.team_id
        )
        await write(None, [Violation(rule="evil", subject=MARKUP, detail=MARKUP)], {})
