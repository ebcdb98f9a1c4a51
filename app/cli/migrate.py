"""`headwater migrate`: brings our own database to this version, and makes the role with which the service logs in."""

import msgspec
import rich_click as click

from app.cli.installation import settings, store
from app.cli.output import shown
from app.store.migrate import ADVICE, MigrationFailed
from app.store.service_role import current_role, powers_beyond_need, prepare
from app.store.session import connected


class Migrated(msgspec.Struct, frozen=True, kw_only=True):
    """`role` is the one of HEADWATER_CONTROL_DSN."""

    role: str
    advice: str | None
    """What is better done about that role."""


@click.command()
@shown
async def migrate() -> Migrated:
    """Bring our own database to this version, and give the service's role its rights.

    HEADWATER_CONTROL_ADMIN_DSN is the owner of the tables, HEADWATER_CONTROL_DSN the role that the API and the workers
    log in with: it is made with its password where there is none. Run it before a new version starts.
    """
    known = settings()
    assert known.control_dsn is not None
    if known.control_admin_dsn is None:
        async with store():
            return Migrated(role=await current_role(), advice=ADVICE if await powers_beyond_need() else None)
    try:
        await prepare(known.control_admin_dsn, known.control_dsn)
    except MigrationFailed as error:
        raise click.ClickException(str(error)) from None
    async with connected(known.control_dsn, max_size=1):
        return Migrated(role=await current_role(), advice=None)
