"""`headwater workflows`: what is under way in Temporal."""

from datetime import datetime

import msgspec
import rich_click as click

from app.cli.output import shown
from app.cli.running import settings
from app.core.temporal import connect


class OpenWorkflow(msgspec.Struct):
    workflow_id: str
    type: str
    started_at: datetime


@click.group()
def workflows() -> None:
    """Workflows."""


@workflows.command("open")
@shown
async def open_workflows() -> list[OpenWorkflow]:
    """Show the workflows that have not ended."""
    known = settings()
    client = await connect(known.temporal_address, known.temporal_namespace)
    found = client.list_workflows("ExecutionStatus = 'Running'")
    return [OpenWorkflow(one.id, one.workflow_type, one.start_time) async for one in found]
