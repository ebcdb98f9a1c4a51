"""The restore drill of docs/backups.md: our own database is lost; the store and the secret keys are left."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from uuid import uuid4

import pytest
import pytest_asyncio
from pyrage.x25519 import Identity

from app.contracts.base import Engine
from tests.cli.command import Headwater
from tests.restores.support import backed_up, filled, session
from tests.support.client import Caller, new_caller
from tests.support.provisioners import postgres_provisioner
from tests.support.service import RunningService, SharedServers, register_hosts
from tests.support.store import migrated_database

DOCUMENT = Path(__file__).parents[2] / "docs" / "backups.md"


class Lost:
    def __init__(self, service: RunningService, lose: Callable[[], Awaitable[None]]) -> None:
        self.service = service
        self.lose = lose

    def command(self) -> Headwater:
        names = ("CONTROL_DSN", "SECRET_KEYS", "HOME")
        environ = self.service.environ()
        return Headwater({name: environ[f"HEADWATER_{name}"] for name in names})


@pytest_asyncio.fixture(scope="module")
async def lost(tmp_path_factory: pytest.TempPathFactory, shared_servers: SharedServers) -> AsyncIterator[Lost]:
    """A service whose own database a test may take away; its backups only an operator's identity reads."""
    identity, folder = Identity.generate(), tmp_path_factory.mktemp("lost")
    (folder / "identity").write_text(str(identity))
    admins = {
        Engine.POSTGRES: await postgres_provisioner(shared_servers.postgres, uuid4().hex, f"drill{uuid4().hex[:8]}")
    }
    async with shared_servers.service(
        folder,
        with_mysql=False,
        admins=admins,
        BACKUP_AGE_RECIPIENT=str(identity.to_public()),
        ORPHAN_REMOVAL="false",
    ) as service:

        async def lose() -> None:
            await service.stop()
            service.control_dsn = await migrated_database(shared_servers.control.admin_dsn)
            await register_hosts(service.control_dsn, service.box, admins)
            await service.start("worker")
            await service.start("api")

        yield Lost(service, lose)


def commands_of_the_drill() -> list[str]:
    """The commands on the page, in order, without what differs each time."""
    section = DOCUMENT.read_text().partition("## When our own database is lost")[2].partition("\n## ")[0]
    return re.findall(r"^headwater ([a-z-]+ [a-z-]+)", section, re.MULTILINE)


async def test_the_drill(lost: Lost) -> None:
    before = await lost.service.caller()
    source = await filled(before, Engine.POSTGRES, rows=3)
    backup = await backed_up(before, source)
    await lost.lose()
    command, ran = lost.command(), list[str]()

    async def run(*arguments: str) -> object:
        ran.append(" ".join(arguments[:2]))
        return await command.json(*arguments)

    ran.append("hosts add")  # which register_hosts does as the command does
    alone = Headwater({name: value for name, value in command.settings.items() if name != "CONTROL_DSN"})
    [there] = await alone.json("backups", "recover")
    ran.append("backups recover")
    assert (there["uuid"], there["database"], there["rows"]) == (backup["uuid"], "source", 3)
    assert there["state"] == "identity needed"

    after = await new_caller(lost.service.http, lost.service.control_dsn, tier="pro")
    ran.append("users create")
    refused = await command.refusal("backups", "restore", backup["uuid"], "--team", str(after.team_id))
    assert "--identity" in refused
    identity = str(lost.service.folder / "identity")
    restored = await run(
        "backups", "restore", backup["uuid"][:13], "--team", str(after.team_id), "--identity", identity
    )
    assert isinstance(restored, dict)
    assert (restored["status"], restored["name"]) == ("active", "source")
    await came_back(after, restored["uuid"])
    report = await run("backups", "verify-store", "--deep")
    assert report == {"ok": True, "violations": [], "notes": []}
    assert ran == commands_of_the_drill()


async def came_back(caller: Caller, database: str) -> None:
    """With all that it held, for its team."""
    made = (await caller.get(f"/databases/{database}")).json()["data"]
    async with session(made) as tenant:
        assert [row["note"] for row in await tenant.fetch("SELECT note FROM visits ORDER BY id")] == [
            "visit 0",
            "visit 1",
            "visit 2",
        ]
