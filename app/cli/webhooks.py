"""`headwater webhooks`: which deliveries wait, and why."""

import rich_click as click

from app.cli.installation import store
from app.cli.output import shown
from app.webhooks.waiting import WaitingEndpoint, list_endpoints


@click.group()
def webhooks() -> None:
    """Deliveries to webhook endpoints."""


@webhooks.command("waiting")
@shown
async def waiting() -> list[WaitingEndpoint]:
    """Show the endpoints for which deliveries wait: for a receiver that hangs, for a retry, or for their turn."""
    async with store():
        return await list_endpoints()
