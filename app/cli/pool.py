"""`headwater pool`: databases that are kept ready for creates."""

import rich_click as click

from app.audit.actions import Action
from app.audit.drafts import note
from app.audit.events import change
from app.cli.installation import settings, store
from app.cli.output import shown
from app.contracts.base import Engine
from app.databases.pool import targets
from app.databases.pool.claim import notify_refill
from app.databases.pool.targets import MOST_MEMBERS, PoolStatus


@click.group()
def pool() -> None:
    """The warm pools, one for each engine in each region."""


@pool.command("status")
@shown
async def status() -> list[PoolStatus]:
    """Show each pool's size, and how many of its databases are ready."""
    async with store():
        return await targets.pool_status(settings().pool_size)


@pool.command("set")
@click.option("--region", required=True, help="A region that has a host.")
@click.option(
    "--engine", type=click.Choice([engine.value for engine in Engine]), required=True, help="MariaDB is mysql."
)
@click.option("--size", type=click.IntRange(0, MOST_MEMBERS), help="Databases to keep ready; 0 for no pool.")
@click.option("--default", "by_default", is_flag=True, help="Use HEADWATER_POOL_SIZE again.")
@shown
async def set_size(region: str, engine: str, size: int | None, by_default: bool) -> PoolStatus:
    """Set a pool's size, in place of HEADWATER_POOL_SIZE."""
    if (size is None) != by_default:
        raise click.UsageError("Give --size or --default.")
    async with store():
        async with change(Action.POOL_SET, ("pool", f"{engine}/{region}")):
            note(changes={"size": (None, size)})
            await targets.set_target(Engine(engine), region, size)
            await notify_refill()
        all_pools = await targets.pool_status(settings().pool_size)
    return next(one for one in all_pools if (one.region, one.engine) == (region, engine))
