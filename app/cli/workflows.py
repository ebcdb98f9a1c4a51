"""`headwater workflows`: open workflows in Temporal."""

import rich_click as click

from app.cli.installation import settings, store
from app.cli.output import shown
from app.cli.parameters import POSITIVE
from app.cli.tables import SHOWN, Rows
from app.core.temporal import connect_from_settings
from app.databases.records import names_of
from app.upkeep.inventory.workflows import OpenWorkflow, WorkflowState, list_open


@click.group()
def workflows() -> None:
    """Workflows."""


@workflows.command("open")
@click.option(
    "--state", type=click.Choice([state.value for state in WorkflowState]), help="Only workflows in this state."
)
@click.option("--limit", type=POSITIVE, default=SHOWN, show_default=True, help="The most lines; --json prints all.")
@shown
async def open_workflows(state: str | None, limit: int) -> Rows:
    """Show the workflows that have not ended, stuck ones first."""
    known = settings()
    client = await connect_from_settings(known)
    found = [one for one in await list_open(client) if state in (None, one.state.value)]
    await _name(found)
    stuck = sum(one.state is WorkflowState.STUCK for one in found)
    return Rows(rows=found, total=len(found), noun="open workflows", note=f"{stuck} stuck", max_rows=limit)


async def _name(found: list[OpenWorkflow]) -> None:
    async with store():
        names = await names_of([one.database for one in found if one.database is not None])
    for one in found:
        if one.database in names:
            one.name, one.team = names[one.database]
