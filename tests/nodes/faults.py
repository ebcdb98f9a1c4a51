"""What happens to machines: they are killed, frozen, cut off in both ways or in one, and slowed."""

import asyncio
import logging
import random
import signal
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from tests.e2e.patient_client import PatientClient
from tests.nodes.plant import REGIONS, Plant
from tests.support.waiting import until

log = logging.getLogger(__name__)

_OURS = ("api-1", "api-2", "control-1", "control-2", "webhooks-1", "webhooks-2")
_ENGINE_WORKERS = ("engine-1-1", "engine-1-2", "engine-2-1", "engine-2-2")
_SERVERS = ("temporal", "host-1", "host-2")
_STANDBY = "store-2"
HEALED_SECONDS = 30.0
"""From a fault's end until a new database is active in each region."""


@dataclass
class Healed:
    """Seconds, by the fault."""

    seconds: dict[str, float] = field(default_factory=dict)


async def _kill(plant: Plant, name: str, seconds: float) -> None:
    await plant.kill(name)
    await asyncio.sleep(seconds)
    await plant.start(plant.services[name])


async def _freeze(plant: Plant, name: str, seconds: float) -> None:
    plant.signal(name, signal.SIGSTOP)
    try:
        await asyncio.sleep(seconds)
    finally:
        plant.signal(name, signal.SIGCONT)


async def _cut(plant: Plant, name: str, seconds: float) -> None:
    await _on_its_line(plant, name, seconds, "cut")


async def _deafen(plant: Plant, name: str, seconds: float) -> None:
    await _on_its_line(plant, name, seconds, "deafen")


async def _slow(plant: Plant, name: str, seconds: float) -> None:
    await _on_its_line(plant, name, seconds, "slow")


async def _on_its_line(plant: Plant, name: str, seconds: float, what: str) -> None:
    machine = plant.network.machines[name]
    getattr(machine, what)()
    try:
        await asyncio.sleep(seconds)
    finally:
        machine.heal()


_FAULTS: tuple[Callable[[Plant, str, float], Awaitable[None]], ...] = (_kill, _freeze, _cut, _deafen, _slow)


async def inject_faults(plant: Plant, client: PatientClient, faults: int, chance: random.Random) -> Healed:
    """So many faults, each when the one before is healed; in the middle of them our own database's primary is lost,
    and its standby promoted."""
    healed = Healed()
    for number in range(faults):
        if number == faults // 2:
            log.info("the primary of our own database is lost")
            await plant.promote()
            await _heal(healed, "promotion", client)
        fault = chance.choice(_FAULTS)
        names = [*_OURS, *_ENGINE_WORKERS, *_SERVERS]
        # A line that is cut between the primary and its only synchronous standby stops every commit: that is meant.
        names += [_STANDBY] if fault is not _kill and number < faults // 2 else []
        name, seconds = chance.choice(names), chance.uniform(2, 8)
        what = f"{number + 1}: {fault.__name__.strip('_')} {name} for {seconds:.0f} s"
        log.info(what)
        await fault(plant, name, seconds)
        await _heal(healed, what, client)
    return healed


async def _heal(healed: Healed, what: str, client: PatientClient) -> None:
    ended = time.monotonic()
    await asyncio.gather(*(_probe(client, region) for region in REGIONS))
    healed.seconds[what] = time.monotonic() - ended
    log.info("healed after %.1f s", healed.seconds[what])


async def _probe(client: PatientClient, region: str) -> None:
    """A new database there, until it is active; then it goes again."""
    answer = await client.create("postgres", wait=30, region=region)
    uuid = answer.data["uuid"]

    async def active() -> bool:
        return bool((await client.get(uuid)).data["status"] == "active")

    await until(active, timeout=client.patience)
    assert (await client.delete(uuid)).status == 200
