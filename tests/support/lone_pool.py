"""The API in this process with a pool of rows whose hosts don't exist, because claims don't use them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from app.contracts.base import Engine
from app.core.secrets import SecretBox, new_key_setting
from app.databases.pool.members import begin_member
from app.hosts.loads import loads_of
from app.quotas.plans import DEFAULT_PLANS
from app.store.session import fetch
from tests.support.in_process import LoneApi, lone_api


@dataclass(frozen=True)
class LonePool:
    api: LoneApi
    box: SecretBox

    async def add_members(self, count: int, host: int, **columns: Any) -> list[UUID]:
        """Ready members on that host, in the order in which they are claimed."""
        (load,) = await loads_of([host])
        before = await fetch("SELECT coalesce(max(id), 0) AS id FROM databases")
        for _ in range(count):
            await begin_member(DEFAULT_PLANS, self.box, Engine.POSTGRES, load)
        changes = {"status": "active", **columns}
        setting = ", ".join(f"{name} = ${number + 2}" for number, name in enumerate(changes))
        rows = await fetch(
            f"UPDATE databases SET provisioned_at = now(), {setting} WHERE id > $1 RETURNING id, uuid",
            before[0]["id"],
            *changes.values(),
        )
        return [row["uuid"] for row in sorted(rows, key=lambda row: int(row["id"]))]


@asynccontextmanager
async def lone_pool(control_dsn: str, **settings: Any) -> AsyncIterator[LonePool]:
    keys = new_key_setting()
    # No worker is there to put limits in force.
    async with lone_api(control_dsn, secret_keys=keys, **{"limits_timeout_seconds": 0.2, **settings}) as api:
        yield LonePool(api, SecretBox.from_setting(keys))
