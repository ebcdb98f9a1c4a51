"""Backups, and what else is begun, while every part is killed: then what is called completed has to restore.

An `Act` is something that a client does to one database, again and again, whatever is down. Another kind of change adds
its own to `ACTS`, and what must hold of it afterwards to `RULES`.
"""

import asyncio
import contextlib
import functools
import logging
import random
import signal
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiomysql
import asyncpg
import httpx

from tests.e2e.hosts import mysql, postgres
from tests.e2e.patient_client import Answered, PatientClient
from tests.support.stack import PARTS, LiveStack
from tests.support.waiting import until

log = logging.getLogger(__name__)

STORE = "store"
FAULTY = (*PARTS, STORE)
_ROWS = 500
_BALANCE = 100
_MADE_AT_ONCE = 4
_RESTORING = ("database_not_active", "restoration_in_progress")
_UNDER_WAY = """
SELECT EXISTS (SELECT FROM backups WHERE status = 'running') AS backup,
       EXISTS (SELECT FROM backups WHERE status = 'completed' AND proof_status = 'running') AS proof,
       EXISTS (SELECT FROM restorations WHERE ended_at IS NULL) AS restore
"""
_LEFT = """
SELECT 'backup' AS what, b.uuid::text, b.engine, b.kind, b.status, b.attempts, b.admitted_at::text,
       b.beat_at::text, b.error
FROM backups b WHERE b.status IN ('pending', 'running')
UNION ALL
SELECT 'proof', b.uuid::text, b.engine, b.kind, b.proof_status, b.proof_number, b.proof_changed_at::text,
       b.proof_beat_at::text, b.proof_error
FROM backups b WHERE b.status = 'completed' AND b.proof_status = 'running'
UNION ALL
SELECT 'restoration', r.uuid::text, d.engine, r.kind, d.status, 0, r.created_at::text, r.exchanging_at::text, (
    SELECT o.status || ' ' || coalesce(o.reason::text, '') FROM operations o
    WHERE o.database_id = d.id AND o.finished_at IS NULL ORDER BY o.id DESC LIMIT 1)
FROM restorations r JOIN databases d ON d.id = r.database_id WHERE r.ended_at IS NULL
"""
_COUNTED = "SELECT count(*), (SELECT sum(balance) FROM accounts), (SELECT count(*) FROM transfers) FROM accounts"


StoreDown = Callable[[], contextlib.AbstractContextManager[None]]


@dataclass
class BackupScene:
    """Where the storm is, and what clients were told."""

    stack: LiveStack
    client: PatientClient
    databases: dict[str, str] = field(default_factory=dict)
    """Connection strings by uuid."""
    backups: dict[str, str] = field(default_factory=dict)
    """The databases of which they are, by uuid."""
    made: list[str] = field(default_factory=list)
    """From a backup, or from another database, and not looked at yet."""
    store_down: StoreDown | None = None
    """Without it the store's folder is taken away."""
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
        f"INSERT INTO accounts VALUES {', '.join(f'({n}, {_BALANCE})' for n in range(_ROWS))}",
    ]
    for statement in statements:
        await _execute(made["connection_string"], statement)


async def take(scene: BackupScene, chance: random.Random, database: str) -> None:
    wait = chance.choice(("", "?wait=true&timeout=5"))
    answer = await scene.client.send("POST", f"/databases/{database}/backups{wait}", None, {"description": "storm"})
    if answer.status in (201, 202):
        scene.backups[answer.data["uuid"]] = database
    else:
        # Too many; or a restore has it closed.
        assert answer.status == 429 or _code(answer) in _RESTORING, answer.body


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
    if answer.status == 409:  # a restore waits for it
        return
    assert answer.status == 200, answer.body
    scene.backups.pop(backup, None)


async def write(scene: BackupScene, chance: random.Random, database: str) -> None:
    """The tenant works; what its host loses of it is no matter here."""
    with contextlib.suppress(Exception):
        async with asyncio.timeout(5):
            number = chance.randrange(_ROWS)
            # Together: in whatever is whole there are as many transfers as the balances are above what they were.
            await _execute(
                scene.databases[database],
                "BEGIN",
                f"UPDATE accounts SET balance = balance + 1 WHERE id = {number}",
                f"INSERT INTO transfers VALUES ({number}, 'a note')",
                "COMMIT",
            )


async def restore(scene: BackupScene, chance: random.Random, _: str) -> None:
    """A new database from a backup."""
    known = sorted(scene.backups)
    if known:
        await _make(scene, chance, {"backup_uuid": chance.choice(known)})


async def clone(scene: BackupScene, chance: random.Random, database: str) -> None:
    await _make(scene, chance, {"database_uuid": database, "pause_source": chance.random() < 0.5})


async def restore_in_place(scene: BackupScene, chance: random.Random, database: str) -> None:
    """While others write, take backups of it, and clone it."""
    known = sorted(uuid for uuid, of in scene.backups.items() if of == database)
    if not known:
        return
    path = f"/databases/{database}/restorations{chance.choice(('', '?wait=true&timeout=10'))}"
    answer = await scene.client.send("POST", path, None, {"backup_uuid": chance.choice(known)})
    assert answer.status in (200, 202, 429) or _code(answer) in (
        *_RESTORING,
        "backup_not_completed",
        "restoration_failed",
        "not_found",
    ), answer.body


async def look(scene: BackupScene, chance: random.Random, _: str) -> None:
    """At one that was made: while it is being filled nobody is let in, and once it is active it is whole."""
    if not scene.made:
        return
    uuid = scene.made.pop(chance.randrange(len(scene.made)))
    answer = await scene.client.send("GET", f"/databases/{uuid}")
    if answer.status == 404:  # its backup was deleted first
        return
    if answer.data["status"] == "provisioning":
        scene.made.append(uuid)
        return
    assert await _is_whole(answer.data["connection_string"]), f"{uuid} is {answer.data['status']}, and not whole"
    assert (await scene.client.delete(uuid)).status == 200


async def _make(scene: BackupScene, chance: random.Random, source: dict[str, Any]) -> None:
    if len(scene.made) >= _MADE_AT_ONCE:
        return
    body = {"name": "made", "source": source}
    answer = await scene.client.send("POST", f"/databases{chance.choice(('', '?wait=true&timeout=5'))}", None, body)
    if answer.status in (201, 202):
        scene.made.append(answer.data["uuid"])
    else:
        assert answer.status in (404, 422, 429), answer.body


async def _is_whole(connection_string: str) -> bool:
    """Asked until its host answers."""

    async def asked() -> tuple[int, int, int] | None:
        with contextlib.suppress(OSError, asyncpg.PostgresError, aiomysql.MySQLError, TimeoutError):
            async with asyncio.timeout(5):
                return await _counted(connection_string)
        return None

    found = await until(asked, timeout=120)
    assert found is not None, "it was waited for"
    accounts, balance, transfers = found
    return accounts == _ROWS and balance == _ROWS * _BALANCE + transfers


ACTS: list[tuple[Act, int]] = [
    (take, 4),
    (prove, 2),
    (remove, 1),
    (write, 5),
    (restore, 2),
    (clone, 1),
    (restore_in_place, 1),
    (look, 4),
]
"""With their weights."""


async def act(scene: BackupScene, chance: random.Random, stop: asyncio.Event) -> None:
    """One client, until told to stop."""
    acts, weights = zip(*ACTS, strict=True)
    while not stop.is_set():
        [chosen] = chance.choices(acts, weights)
        await chosen(scene, chance, chance.choice(sorted(scene.databases)))
        scene.acts += 1
        await asyncio.sleep(chance.uniform(0, 0.3))


async def kill_parts(scene: BackupScene, chance: random.Random, kills: int, stop: asyncio.Event) -> None:
    """So many parts, one after the other. What each meets is counted: most moments have something under way."""
    met: Counter[str] = Counter()
    for number in range(1, kills + 1):
        await asyncio.sleep(chance.uniform(0.3, 1.5))
        # One that is on its way back is left alone: on a slow machine nothing else would ever be answered.
        part = chance.choice([one for one in FAULTY if one != "api" or await _answers(scene)])
        met.update(await _under_way(scene))
        log.info("kill %s: %s; so far %s", number, part, dict(met))
        if part == STORE:
            down = scene.store_down or functools.partial(store_lost, scene.stack.home / "backups")
            with down():
                await asyncio.sleep(chance.uniform(0.2, 1))
        else:
            scene.stack.send_signal(part, signal.SIGKILL)
    stop.set()


async def _answers(scene: BackupScene) -> bool:
    """Whether the API has come back."""
    try:
        return (await scene.client.http.get("/health/live", timeout=2)).status_code < 600
    except httpx.TransportError:
        return False


async def _under_way(scene: BackupScene) -> list[str]:
    """What a kill at this moment meets: `backup`, `proof`, `restore`, or `unknown` while our own database is away."""
    try:
        async with asyncio.timeout(1):
            [row] = await scene.stack.control(_UNDER_WAY)
    except Exception:
        return ["unknown"]
    return [kind for kind in ("backup", "proof", "restore") if row[kind]] or ["nothing"]


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
    """Every backup, every proof and every restore comes to its end."""

    left: list[Any] = []

    async def rested() -> bool:
        left[:] = await scene.stack.control(_LEFT)
        return not left

    try:
        await until(lambda: _quietly(rested), timeout=240)
    except AssertionError:
        raise AssertionError(f"still under way: {[dict(row) for row in left]}") from None


async def completed_ones_restore(scene: BackupScene) -> None:
    """Each, by the path of every restore, equal to what it held."""
    whole = [uuid for uuid in sorted(scene.backups) if (await scene.backup(uuid))["status"] == "completed"]
    log.info("%s of %s backups are completed", len(whole), len(scene.backups))
    assert whole, "no backup survived the storm"
    for uuid in whole:
        answer = await scene.client.send("POST", f"/backups/{uuid}/restore_tests?wait=true&timeout=100", None, None)
        assert answer.data["proof"]["status"] == "proven", answer.data


async def what_is_active_is_whole(scene: BackupScene) -> None:
    """What was made, and what was restored in place, from whichever backup."""
    chance = random.Random(0)
    while scene.made:
        await look(scene, chance, "")
    for uuid, connection_string in scene.databases.items():
        now = (await scene.client.send("GET", f"/databases/{uuid}")).data
        assert (now["status"], now["connection_string"]) == ("active", connection_string)
        assert await _is_whole(connection_string)


RULES: list[Rule] = [none_under_way, what_is_active_is_whole, completed_ones_restore]


async def _quietly(look: Callable[[], Awaitable[bool]]) -> bool:
    """What was killed may not be back yet."""
    try:
        return await look()
    except Exception:
        return False


def _code(answer: Answered) -> str | None:
    code: str | None = answer.body.get("error", {}).get("code")
    return code


async def _execute(connection_string: str, *statements: str) -> None:
    if connection_string.startswith("postgresql"):
        async with postgres(connection_string) as connection:
            for statement in statements:
                await connection.execute(statement)
    else:
        async with mysql(connection_string) as cursor:
            for statement in statements:
                await cursor.execute(statement)


async def _counted(connection_string: str) -> tuple[int, int, int]:
    if connection_string.startswith("postgresql"):
        async with postgres(connection_string) as connection:
            found = await connection.fetchrow(_COUNTED)
    else:
        async with mysql(connection_string) as cursor:
            await cursor.execute(_COUNTED)
            found = await cursor.fetchone()
    accounts, balance, transfers = map(int, found)
    return accounts, balance, transfers
