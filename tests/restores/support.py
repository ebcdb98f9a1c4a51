"""What tests of restores do as a client, and as a tenant."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import pytest
from temporalio.exceptions import ApplicationError

from activities.engine import EngineActivitiesOnHosts
from app.contracts.base import Engine
from tests.e2e.hosts import mysql, postgres
from tests.support.answers import data_of
from tests.support.client import Caller
from tests.support.service import RunningService
from tests.support.waited import WAIT, waited


@asynccontextmanager
async def session(made: dict[str, Any]) -> AsyncIterator[Any]:
    """A tenant's, with an `execute`."""
    opened = postgres if made["db_type"] == Engine.POSTGRES else mysql
    async with opened(made["connection_string"]) as tenant:
        yield tenant


async def filled(caller: Caller, engine: Engine, rows: int = 3, **fields: Any) -> dict[str, Any]:
    """An active database with a table of so many rows."""
    made = await caller.created("source", db_type=engine.value, **fields)
    async with session(made) as tenant:
        await tenant.execute("CREATE TABLE visits (id integer PRIMARY KEY, note varchar(40))")
        for number in range(rows):
            await tenant.execute(f"INSERT INTO visits VALUES ({number}, 'visit {number}')")
    return made


async def visits(made: dict[str, Any]) -> int:
    """How many rows the tenant finds."""
    async with session(made) as tenant:
        if made["db_type"] == Engine.POSTGRES:
            return int(await tenant.fetchval("SELECT count(*) FROM visits"))
        await tenant.execute("SELECT count(*) FROM visits")
        return int((await tenant.fetchone())[0])


async def backed_up(caller: Caller, made: dict[str, Any]) -> dict[str, Any]:
    """A completed backup."""
    answer = await caller.post(f"/databases/{made['uuid']}/backups", {}, params=WAIT)
    backup: dict[str, Any] = (await waited(caller, answer, "/backups"))["data"]
    assert backup["status"] == "completed", backup
    return backup


def damage(service: RunningService, backup: dict[str, Any]) -> None:
    """Flips a byte in the middle of the dump."""
    (part,) = (service.folder / "backups" / backup["uuid"]).rglob("*.zst.age")
    held = bytearray(part.read_bytes())
    held[len(held) // 2] ^= 1
    part.write_bytes(held)


async def full(caller: Caller, uuid: str) -> dict[str, Any]:
    """The database as it is now, with its password."""
    data: dict[str, Any] = data_of(await caller.get(f"/databases/{uuid}"))
    return data


async def waits_for(caller: Caller, operation: str, code: str) -> bool:
    """Whether the operation waits with this reason."""
    seen = data_of(await caller.get(f"/operations/{operation}"))
    return bool(seen["status"] == "waiting" and seen["reason"]["code"] == code)


async def refusal(steps: EngineActivitiesOnHosts, database: UUID) -> str | None:
    """Why its data is not destroyed."""
    with pytest.raises(ApplicationError) as refused:
        await steps.destroy_database(database)
    return refused.value.type
