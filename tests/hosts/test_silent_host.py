"""An engine host that takes connections and answers none, on the real service: the region's other host serves on."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from app.contracts.base import Engine
from app.core.secrets import SecretBox
from app.engines.base import AdminAddress
from app.hosts.adapters import admin_place
from app.local.ports import LOOPBACK
from app.store.session import fetch
from tests.support.answers import data_of
from tests.support.service import REGION, RunningService
from tests.support.store import store
from tests.support.waiting import until

SILENT, WELL = 30, 10
"""Databases placed on each: on the silent one more than a worker has places."""


@asynccontextmanager
async def silent_host(box: SecretBox) -> AsyncIterator[int]:
    """Registered as it was when it still answered, with room for so many; its id. Removed after the block."""
    held: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(lambda _, writer: held.append(writer), LOOPBACK, 0)
    port = server.sockets[0].getsockname()[1]
    address = AdminAddress(host=LOOPBACK, port=port, user="nobody", password="nothing")
    sealed = box.seal(msgspec.json.encode(address).decode(), admin_place(Engine.POSTGRES, LOOPBACK, port))
    rows = await fetch(
        """
        INSERT INTO engine_hosts (engine, flavour, version, region, host, port, admin_sealed, capacity,
                                  connection_capacity)
        VALUES ('postgres', 'postgres', '18.0', $1, $2, $3, $4, $5, 100000) RETURNING id
        """,
        REGION,
        LOOPBACK,
        port,
        sealed,
        SILENT,
    )
    try:
        yield int(rows[0]["id"])
    finally:
        await fetch("UPDATE engine_hosts SET draining = true WHERE id = $1", rows[0]["id"])
        for writer in held:
            writer.close()
        server.close()


async def test_it_starves_nobody_and_its_databases_move(service: RunningService) -> None:
    caller = await service.caller()
    async with store(service.control_dsn), silent_host(service.box) as silent:

        async def active() -> dict[int, int]:
            rows = await fetch(
                "SELECT host_id, count(*) AS n FROM databases WHERE team_id = $1 AND status = 'active' GROUP BY 1",
                caller.team_id,
            )
            return {row["host_id"]: row["n"] for row in rows}

        await fetch("UPDATE engine_hosts SET draining = true WHERE engine = 'postgres' AND id <> $1", silent)
        try:
            for answer in await asyncio.gather(*(caller.create() for _ in range(SILENT))):
                assert data_of(answer, 202)["status"] == "provisioning"
        finally:
            await fetch("UPDATE engine_hosts SET draining = false WHERE engine = 'postgres' AND id <> $1", silent)
        await asyncio.gather(*(caller.created() for _ in range(WELL)))

        async def all_moved() -> bool:
            counts = await active()
            return silent not in counts and sum(counts.values()) == SILENT + WELL

        await until(all_moved)
