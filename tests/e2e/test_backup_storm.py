"""Backups and restore tests while every part is killed. The long form takes more kills, and seeds of its own:
`SOAK_KILLS=1000 SOAK_SEED=11 make test ARGS="-m soak tests/e2e/test_backup_storm.py"`."""

import asyncio
import os
import random

import pytest

from tests.e2e.audit import settled
from tests.e2e.backup_storm import RULES, BackupScene, act, fill, strike
from tests.e2e.patient_client import client_of
from tests.support.stack import LiveStack

_FEW = 20
_CLIENTS = 3
_CALM_SECONDS = 240


async def test_what_is_called_completed_restores(stack: LiveStack) -> None:
    await _storm(stack, _FEW, seed=7)


@pytest.mark.soak
async def test_what_is_called_completed_restores_after_a_long_storm(stack: LiveStack) -> None:
    kills, seed = int(os.environ.get("SOAK_KILLS", "1000")), int(os.environ.get("SOAK_SEED", "11"))
    await _storm(stack, kills, seed=seed)


async def _storm(stack: LiveStack, kills: int, *, seed: int) -> None:
    async with client_of(stack, patience=_CALM_SECONDS) as client:
        scene = BackupScene(stack, client)
        await asyncio.gather(fill(scene, "postgres"), fill(scene, "mysql"))
        stop = asyncio.Event()
        clients = [act(scene, random.Random(f"{seed} {number}"), stop) for number in range(_CLIENTS)]
        await asyncio.gather(strike(scene, random.Random(seed), kills, stop), *clients)
        for rule in RULES:
            await rule(scene)
        for backup in sorted(scene.backups):
            assert (await client.send("DELETE", f"/backups/{backup}")).status == 200
        for database in scene.databases:
            assert (await client.delete(database)).status == 200
        # No account, no database, no workflow and no promise is left; scratch databases of proofs that died are due.
        await stack.control(
            "UPDATE databases SET destroy_at = now() WHERE purpose IS NOT NULL AND destroyed_at IS NULL"
        )
        await settled(stack, _CALM_SECONDS)
        assert not client.strange, "\n".join(client.strange)
