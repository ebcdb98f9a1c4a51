"""Backups, and what else is begun, while every part is killed: then what is called completed has to restore.

An `Act` is something that a client does to one database, again and again, whatever is down. Another kind of change adds
its own to `ACTS`, and what must hold of it afterwards to `RULES`.
"""

import asyncio
import contextlib
import logging
import random
import signal
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.e2e.hosts import mysql, postgres
from tests.e2e.patient_client import PatientClient
from tests.support.stack import PARTS, LiveStack
from tests.support.waiting import until

log = logging.getLogger(__name__)

STORE = "store"
STRUCK = (*PARTS, STORE)
_ROWS = 500


@dataclass
class BackupScene:
    """Where the storm is, and what clients were told."""

    stack: LiveStack
    client: PatientClient
    databases: dict[str, str] = field(default_factory=dict)
    """Connection strings by uuid."""
    backups: set[str] = field(default_factory=set)
    acts: int = 0

    async def backup(self, uuid: str) -> dict[str, Any]:
        data: dict[str, Any] = (await self.client.send("GET", f"/backups/{uuid}")).data
        return data


Act = Callable[[BackupScene, random.Random, str], Awaitable[None]]
Rule = Callable[[BackupScene], Awaitable[None]]


async def fill(scene: BackupScene, engine: str) -> None:
    """A database with a little of everything that a dump carries."""
    made = (await scene.client.create(engine, wait=60)).data
    scene.databases[made["uuid"]] = made["connection_string"]
    statements = [
        "CREATE TABLE accounts (id integer PRIMARY KEY, balance integer NOT NULL)",
        "CREATE TABLE transfers (id integer, note varchar(40))",
        "CREATE VIEW rich AS SELECT id FROM accounts WHERE balance > 100",
        f"INSERT INTO accounts VALUES {', '.join(f'({n}, 100)' for n in range(_ROWS))}",
    ]
    for statement in statements:
        await _execute(made["connection_string"], statement)


async def take(scene: BackupScene, chance: random.Random, database: str) -> None:
    wait = chance.choice(("", "?wait=true&timeout=5"))
    answer = await scene.client.send("POST", f"/databases/{database}/backups{wait}", None, {"description": "storm"})
    if answer.status in (201, 202):
        scene.backups.add(answer.data["uuid"])
    else:
        assert answer.status == 429, answer.body


async def prove(scene: BackupScene, chance: random.Random, _: str) -> None:
    known = sorted(scene.backups)
    if not known:
        return
    backup = chance.choice(known)
    answer = await scene.client.send("POST", f"/backups/{backup}/restore_tests", None, None)
    assert answer.status in (201, 202, 422, 429), answer.body


async def remove(scene: BackupScene, chance: random.Random, _: str) -> None:
    known = sorted(scene.backups)
    if len(known) < 3:
        return
    backup = chance.choice(known)
    answer = await scene.client.send("DELETE", f"/backups/{backup}")
    assert answer.status == 200, answer.body
    scene.backups.discard(backup)


async def write(scene: BackupScene, chance: random.Random, database: str) -> None:
    """The tenant works; what its host loses of it is no matter here."""
    with contextlib.suppress(Exception):
        async with asyncio.timeout(5):
            number = chance.randrange(_ROWS)
            for statement in (
                f"UPDATE accounts SET balance = balance + 1 WHERE id = {number}",
                f"INSERT INTO transfers VALUES ({number}, 'a note')",
            ):
                await _execute(scene.databases[database], statement)


ACTS: list[tuple[Act, int]] = [(take, 4), (prove, 2), (remove, 1), (write, 5)]
"""With their weights."""


async def act(scene: BackupScene, chance: random.Random, stop: asyncio.Event) -> None:
    """One client, until told to stop."""
    acts, weights = zip(*ACTS, strict=True)
    while not stop.is_set():
        [chosen] = chance.choices(acts, weights)
        await chosen(scene, chance, chance.choice(sorted(scene.databases)))
        scene.acts += 1
        await asyncio.sleep(chance.uniform(0, 0.3))


async def strike(scene: BackupScene, chance: random.Random, kills: int, stop: asyncio.Event) -> None:
    """So many parts, one after the other."""
    for _ in range(kills):
        await asyncio.sleep(chance.uniform(0.3, 1.5))
        part = chance.choice(STRUCK)
        log.info("kill %s", part)
        if part == STORE:
            with store_lost(scene.stack.home / "backups"):
                await asyncio.sleep(chance.uniform(0.2, 1))
        else:
            scene.stack.send_signal(part, signal.SIGKILL)
    stop.set()


@contextlib.contextmanager
def store_lost(folder: Path) -> Iterator[None]:
    """A file in the place of the store's folder: whatever is asked of it fails."""
    aside = folder.with_name(f"{folder.name}-aside")
    folder.rename(aside)
    folder.touch()
    try:
        yield
    finally:
        folder.unlink()
        aside.rename(folder)


async def none_under_way(scene: BackupScene) -> None:
    """Every backup and every proof comes to its end."""

    async def rested() -> bool:
        rows = await scene.stack.control(
            "SELECT count(*) AS n FROM backups WHERE status IN ('pending', 'running')"
            " OR status = 'completed' AND proof_status = 'running'"
        )
        return not rows[0]["n"]

    await until(lambda: _quietly(rested), timeout=240)


async def completed_ones_restore(scene: BackupScene) -> None:
    """Each, by the path of every restore, equal to what it held."""
    whole = [uuid for uuid in sorted(scene.backups) if (await scene.backup(uuid))["status"] == "completed"]
    log.info("%s of %s backups are completed", len(whole), len(scene.backups))
    assert whole, "no backup survived the storm"
    for uuid in whole:
        answer = await scene.client.send("POST", f"/backups/{uuid}/restore_tests?wait=true&timeout=100", None, None)
        assert answer.data["proof"]["status"] == "proven", answer.data


RULES: list[Rule] = [none_under_way, completed_ones_restore]


async def _quietly(look: Callable[[], Awaitable[bool]]) -> bool:
    """What was killed may not be back yet."""
    try:
        return await look()
    except Exception:
        return False


async def _execute(connection_string: str, statement: str) -> None:
    if connection_string.startswith("postgresql"):
        async with postgres(connection_string) as connection:
            await connection.execute(statement)
    else:
        async with mysql(connection_string) as cursor:
            await cursor.execute(statement)
