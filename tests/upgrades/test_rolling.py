"""An upgrade that nobody notices: clients work all the while, and no request of theirs fails.

What is done is what docs/upgrading.md says, in its order. In `make test` there is one client; the longer form has more,
keeps processes of both versions side by side for longer, and restarts old ones among new ones.
"""

import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest
import pytest_asyncio

from app.contracts.base import Engine
from app.local.temporal import TemporalService
from tests.e2e.hosts import login
from tests.servers import RunningServer
from tests.support.receiver import Receiver, receiver
from tests.support.store import service_dsn
from tests.support.waiting import LIMIT_SECONDS, until
from tests.upgrades.installation import HERE, Installation, installed
from tests.upgrades.load import Journal, working
from tests.upgrades.released import COMMITS, environment

_RELEASE = list(COMMITS)[-1]
_UNFINISHED = """
SELECT 'operation ' || id || ' is ' || status FROM operations WHERE finished_at IS NULL
UNION ALL SELECT uuid || ' is not destroyed' FROM databases WHERE status = 'deleted' AND destroyed_at IS NULL
UNION ALL SELECT workflow_id || ' is not started' FROM workflow_starts
UNION ALL SELECT 'delivery ' || id || ' is ' || status FROM webhook_deliveries WHERE status <> 'delivered'
"""
_STATES = "SELECT uuid::text, status FROM databases WHERE team_id IS NOT NULL"
_EVENTS = ["database.provisioned", "database.deleted"]


@dataclass
class Scene:
    made: Installation
    old: Path
    """The interpreter with the release."""
    key: str
    hosts: dict[Engine, RunningServer]
    receiver: Receiver

    async def replace_api(self, name: str, python: Path) -> None:
        """Takes it out of the proxy, lets it answer what it has, and starts that version in its place."""
        gate = self.made.proxy.gates[self.made.apis[name]]
        await gate.set(False)
        await self.made.stop(name)
        await self.made.start_api(name, python)
        await gate.set(True)

    async def migrate(self) -> None:
        """From now on processes that start log in with the service's role. Those of the release go on as the owner."""
        role = service_dsn(self.made.owner_dsn)
        await self.made.command(CONTROL_ADMIN_DSN=self.made.owner_dsn, CONTROL_DSN=role).text("migrate")
        self.made.environ["HEADWATER_CONTROL_DSN"] = role


@pytest_asyncio.fixture
async def scene(
    tmp_path: Path,
    control_server: RunningServer,
    temporal_server: TemporalService,
    postgres_server: RunningServer,
    mysql_server_if_any: RunningServer | None,
) -> AsyncIterator[Scene]:
    """An installation of the release."""
    old = environment(tmp_path / "old", _RELEASE)
    hosts = {Engine.POSTGRES: postgres_server}
    if mysql_server_if_any:
        hosts[Engine.MYSQL] = mysql_server_if_any
    async with (
        receiver(tmp_path) as receiving,
        installed(tmp_path, old, control_server, temporal_server, hosts, receiving) as (made, key),
    ):
        yield Scene(made, old, key, hosts, receiving)


async def test_an_upgrade_fails_no_request_and_loses_nothing(scene: Scene) -> None:
    async with _clients(scene, clients=1, pause=0.5) as journal:
        await _rounds(journal, 1)
        await scene.migrate()
        await _rounds(journal, 1)
        await scene.made.stop("worker")
        await scene.made.start_worker("worker", HERE)
        await _rounds(journal, 1)
        for name in scene.made.apis:
            await scene.replace_api(name, HERE)
            await _rounds(journal, 1)
    await _check(scene, journal)


@pytest.mark.soak
async def test_versions_work_side_by_side(scene: Scene) -> None:
    async with _clients(scene, clients=4, pause=0) as journal:
        await _rounds(journal, 20)
        await scene.migrate()
        await _rounds(journal, 20)
        # A process of the release that starts again finds tables that it doesn't know.
        scene.made.environ["HEADWATER_CONTROL_DSN"] = scene.made.owner_dsn
        await scene.replace_api("api-1", scene.old)
        await scene.made.start_worker("another-worker", scene.old)
        await _rounds(journal, 20)
        scene.made.environ["HEADWATER_CONTROL_DSN"] = service_dsn(scene.made.owner_dsn)
        await scene.made.start_worker("new-worker", HERE)
        await _rounds(journal, 60)
        for worker in ("worker", "another-worker"):
            await scene.made.stop(worker)
        await _rounds(journal, 20)
        for name in scene.made.apis:
            await scene.replace_api(name, HERE)
            await _rounds(journal, 20)
    await _check(scene, journal)


@asynccontextmanager
async def _clients(scene: Scene, *, clients: int, pause: float) -> AsyncIterator[Journal]:
    url = scene.made.proxy.url
    endpoint = {"url": scene.receiver.url("/events"), "events": _EVENTS}
    headers = {"Authorization": f"Bearer {scene.key}"}
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=LIMIT_SECONDS) as http:
        answer = await http.post("/api/v1/webhook_endpoints", json=endpoint, headers={"Idempotency-Key": "endpoint"})
    assert answer.status_code == 201, answer.text
    async with working(url, scene.key, tuple(scene.hosts), clients=clients, pause=pause) as journal:
        yield journal


async def _rounds(journal: Journal, number: int) -> None:
    goal = journal.rounds + number
    await until(lambda: journal.rounds >= goal or journal.failed)


async def _check(scene: Scene, journal: Journal) -> None:
    """All is as the clients were told, nothing is left to do, and each event has arrived."""
    assert journal.failed == []
    assert len(journal.repeated) <= _planned_before(scene), journal.repeated
    await until(lambda: _none(scene, _UNFINISHED), timeout=120)
    states = {row["uuid"]: row["status"] for row in await _rows(scene, _STATES)}
    wanted = dict.fromkeys(journal.kept, "active") | dict.fromkeys(journal.deleted, "deleted")
    assert states == wanted
    for connection_string in journal.kept.values():
        assert await login(connection_string) == 1
    arrived = [(one.headers["webhook-id"], json.loads(one.body)) for one in scene.receiver.of("/events")]
    told = {id: (body["event"], body["data"]["uuid"]) for id, body in arrived}
    wanted_events = {("database.provisioned", uuid) for uuid in states}
    wanted_events |= {("database.deleted", uuid) for uuid in journal.deleted}
    assert Counter(told.values()) == Counter(wanted_events)
    report = await scene.made.command().json("check")
    assert report["violations"] == []


def _planned_before(scene: Scene) -> int:
    """The statements that a process of the release had planned for a table, and used first in a transaction after the
    table had changed: docs/upgrading.md says that it fails. `test_added_columns` holds this version to better."""
    logs = [scene.made.folder / f"{name}.log" for name in scene.made.apis]
    lines = [line for log in logs for line in log.read_text().splitlines()]
    return sum("cached statement plan is invalid" in line for line in lines)


async def _none(scene: Scene, sql: str) -> bool:
    return not await _rows(scene, sql)


async def _rows(scene: Scene, sql: str) -> list[Any]:
    connection = await asyncpg.connect(scene.made.owner_dsn)
    try:
        return list(await connection.fetch(sql))
    finally:
        await connection.close()
