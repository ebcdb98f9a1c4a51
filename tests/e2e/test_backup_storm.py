"""Backups, restore tests and restores while every part is killed. The long forms take more kills, and seeds of their
own: `SOAK_KILLS=1000 SOAK_SEED=11 make test ARGS="-m soak tests/e2e/test_backup_storm.py"`."""

import asyncio
import contextlib
import os
import random
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.e2e.audit import settled
from tests.e2e.backup_storm import RULES, BackupScene, StoreDown, act, fill, kill_parts
from tests.e2e.patient_client import client_of
from tests.support.object_stores import MotoService, s3_server
from tests.support.stack import LiveStack, live_stack
from tests.support.store_faults import Fault, store_faults

_FEW = 20
_CLIENTS = 3
_CALM_SECONDS = 240
_PATIENCE = 900
"""Of a client, who meets parts that are killed anew before all of them are back."""


async def test_what_is_called_completed_restores(stack: LiveStack) -> None:
    await _storm(stack, _FEW, 7)


@pytest.mark.soak
async def test_what_is_called_completed_restores_after_a_long_storm(stack: LiveStack) -> None:
    await _storm(stack, *_asked())


@pytest.mark.soak
async def test_what_is_called_completed_restores_from_s3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kills, seed = _asked()
    chance = random.Random(seed)

    @contextlib.contextmanager
    def refusing() -> Iterator[None]:
        faults = list(Fault)
        way.decide = lambda _method, _path: chance.choice([None, *faults])
        try:
            yield
        finally:
            way.decide = lambda _method, _path: None

    async with s3_server(MotoService(tmp_path)) as server, store_faults(server.port) as way:
        for name, value in {**server.environ, "AWS_ENDPOINT_URL": way.url}.items():
            monkeypatch.setenv(name, value)
        async with httpx.AsyncClient() as http:
            (await http.put(f"{server.url}/storm")).raise_for_status()
        settings = {
            "BACKUP_STORE": "s3://storm/prefix",
            "BACKUP_STORE_TIMEOUT_SECONDS": "5",
            "DELETION_GRACE_SECONDS": "3",
        }
        async with live_stack(tmp_path / "home", **settings) as stack:
            await _storm(stack, kills, seed, store_down=refusing)


def _asked() -> tuple[int, int]:
    return int(os.environ.get("SOAK_KILLS", "1000")), int(os.environ.get("SOAK_SEED", "11"))


async def _storm(stack: LiveStack, kills: int, seed: int, *, store_down: StoreDown | None = None) -> None:
    async with client_of(stack, patience=_PATIENCE) as client:
        scene = BackupScene(stack, client, store_down=store_down)
        await asyncio.gather(fill(scene, "postgres"), fill(scene, "mysql"))
        stop = asyncio.Event()
        clients = [act(scene, random.Random(f"{seed} {number}"), stop) for number in range(_CLIENTS)]
        await asyncio.gather(kill_parts(scene, random.Random(seed), kills, stop), *clients)
        for rule in RULES:
            await rule(scene)
        # Those that restores in place have taken first among them.
        for row in await stack.control("SELECT uuid::text FROM backups WHERE status = 'completed'"):
            assert (await client.send("DELETE", f"/backups/{row['uuid']}")).status == 200
        for database in scene.databases:
            assert (await client.delete(database)).status == 200
        # Neither an account, a database, a workflow nor a pending start is left; scratch databases of proofs that died
        # are due.
        await stack.control(
            "UPDATE databases SET destroy_at = now() WHERE purpose IS NOT NULL AND destroyed_at IS NULL"
        )
        await settled(stack, _CALM_SECONDS)
        assert not client.strange, "\n".join(client.strange)
