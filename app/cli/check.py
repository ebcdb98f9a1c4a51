"""`headwater check`: whether everything is as it must be."""

import rich_click as click

from app.cli.output import shown
from app.cli.running import secret_box, settings, store
from app.reconcile import service
from app.reconcile.report import Report


@click.command()
@shown
async def check() -> Report:
    """Compare our records with themselves and with the hosts. Changes nothing; exits with 1 on a violation."""
    box = secret_box()
    async with store():
        return await service.check(box, settings().orphan_age)
