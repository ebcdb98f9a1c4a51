"""Any part dies in the middle of provisioning or deleting, and all ends as if nothing had happened."""

import asyncio
import logging
import random
import time

import pytest

from tests.e2e.chaos import ENGINES, Ledger, check, create, delete, kill_later
from tests.e2e.patient_client import client_of
from tests.support.stack import PARTS, LiveStack

log = logging.getLogger(__name__)

ROUND = 2
"""Databases of each engine under way when the part dies."""


@pytest.mark.parametrize("part", PARTS)
async def test_a_part_dies_while_databases_are_made(stack: LiveStack, part: str) -> None:
    chance = random.Random(f"{part} provisioning")
    ledger = Ledger()
    async with client_of(stack) as client:
        making = [create(client, ledger, engine, wait=None) for engine in ENGINES * ROUND]
        killing = asyncio.create_task(kill_later(stack, part, chance.uniform(0.02, 0.4)))
        await asyncio.gather(*making)
        killed = await killing
        await check(stack, ledger)
        log.info("at rest %.1f s after the kill", time.monotonic() - killed)
        assert not client.strange
        await asyncio.gather(*(delete(client, ledger, database) for database in ledger.kept))
    await check(stack, ledger)


@pytest.mark.parametrize("part", PARTS)
async def test_a_part_dies_while_databases_are_deleted(stack: LiveStack, part: str) -> None:
    chance = random.Random(f"{part} deleting")
    ledger = Ledger()
    async with client_of(stack) as client:
        active = await asyncio.gather(*(create(client, ledger, engine, wait=30) for engine in ENGINES * (ROUND // 2)))
        fresh = await asyncio.gather(*(create(client, ledger, engine, wait=None) for engine in ENGINES * (ROUND // 2)))
        deleting = [delete(client, ledger, database) for database in (*active, *fresh)]
        killing = asyncio.create_task(kill_later(stack, part, chance.uniform(0.0, 0.3)))
        await asyncio.gather(*deleting)
        killed = await killing
        await check(stack, ledger)
        log.info("at rest %.1f s after the kill", time.monotonic() - killed)
        assert not client.strange
