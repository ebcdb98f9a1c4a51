"""Clients that create and delete, while a seeded hand kills the parts of the stack."""

import asyncio
import logging
import random
import signal
import time
import uuid
from dataclasses import dataclass, field

from app.contracts.base import Engine
from tests.e2e.audit import settled
from tests.e2e.hosts import login
from tests.e2e.patient_client import PatientClient, client_of
from tests.support.stack import PARTS, LiveStack, signal_process

log = logging.getLogger(__name__)

ENGINES = (Engine.POSTGRES, Engine.MYSQL)


@dataclass
class Ledger:
    """What clients were told: the uuid behind each key, and which databases they deleted."""

    created: dict[str, str] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)

    def note(self, key: str, database: str) -> None:
        assert self.created.setdefault(key, database) == database, f"the key {key} made two databases"

    @property
    def kept(self) -> set[str]:
        return set(self.created.values()) - self.deleted


async def create(client: PatientClient, ledger: Ledger, engine: str, *, wait: float | None) -> str:
    key = str(uuid.uuid4())
    answer = await client.create(engine, key=key, wait=wait)
    assert answer.status in (201, 202), answer.body
    ledger.note(key, answer.data["uuid"])
    return str(answer.data["uuid"])


async def delete(client: PatientClient, ledger: Ledger, database: str) -> None:
    answer = await client.delete(database)
    assert answer.status == 200, answer.body
    ledger.deleted.add(database)


async def kill_later(stack: LiveStack, part: str, after: float) -> float:
    """Kills a part after so many seconds; returns the moment, as `time.monotonic` tells it."""
    await asyncio.sleep(after)
    stack.send_signal(part, signal.SIGKILL)
    return time.monotonic()


async def check(stack: LiveStack, ledger: Ledger, timeout: float = 120) -> float:
    """Waits until the stack is at rest and all is as the clients were told. Returns the seconds until rest."""
    took = await settled(stack, timeout)
    rows = await stack.control("SELECT uuid::text, status FROM databases")
    status = {row["uuid"]: row["status"] for row in rows}
    assert set(status) >= set(ledger.created.values()), "a database that was promised is not there"
    assert {status[database] for database in ledger.deleted} <= {"deleted"}
    assert {status[database] for database in ledger.kept} <= {"active"}
    await _check_events(stack, ledger)
    async with client_of(stack) as client:
        for database in ledger.kept:
            assert await login((await client.get(database)).data["connection_string"]) >= 1
    return took


async def _check_events(stack: LiveStack, ledger: Ledger) -> None:
    """Each change left one event in the audit log, however often it was sent and whatever died."""
    rows = await stack.control(
        "SELECT action, subject_id, count(*) AS events FROM audit_events"
        " WHERE action IN ('database.create', 'database.delete') AND outcome = 'succeeded' GROUP BY 1, 2"
    )
    counted = {(row["action"], row["subject_id"]): row["events"] for row in rows}
    wanted = {("database.create", database) for database in ledger.created.values()}
    wanted |= {("database.delete", database) for database in ledger.deleted}
    assert {change: counted.get(change) for change in wanted} == dict.fromkeys(wanted, 1)


class FaultInjector:
    """Kills or freezes parts at moments drawn from a seed, until told to rest."""

    def __init__(self, stack: LiveStack, seed: int) -> None:
        self._stack = stack
        self._random = random.Random(seed)
        self.faults: list[str] = []

    async def run(self, seconds: float) -> None:
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            await asyncio.sleep(self._random.uniform(0.3, 4))
            part = self._random.choice(PARTS)
            if self._random.random() < 0.2:
                await self._freeze(part, self._random.uniform(0.5, 4))
            else:
                self._note(f"kill {part}")
                self._stack.send_signal(part, signal.SIGKILL)

    def _note(self, fault: str) -> None:
        log.info(fault)
        self.faults.append(fault)

    async def _freeze(self, part: str, seconds: float) -> None:
        self._note(f"freeze {part} for {seconds:.1f} s")
        pid = self._stack.pid(part)
        signal_process(pid, signal.SIGSTOP)
        try:
            await asyncio.sleep(seconds)
        finally:
            signal_process(pid, signal.SIGCONT)
