"""`headwater operations`: the changes of all teams' databases that take time."""

from typing import Any
from uuid import UUID

import rich_click as click

from app.audit.actions import Action
from app.audit.events import change
from app.auth import teams
from app.cli.installation import plans, settings, store
from app.cli.output import shown
from app.cli.parameters import POSITIVE
from app.cli.tables import SHOWN, Rows
from app.core.errors import require_found
from app.databases import inventory as databases
from app.operations import inventory
from app.operations.inventory import OperatorFilters
from app.operations.kinds import OperationStatus, OperationType
from app.operators.reading import operation_view
from app.operators.schemas import OperatorOperationView
from app.provisioning import operation_service
from app.provisioning.cancelling import CANCELLATIONS


def _operation(command: Any) -> Any:
    return click.argument("operation", metavar="OPERATION")(command)


@click.group()
def operations() -> None:
    """Changes that take time, of all teams' databases. OPERATION is a uuid or the beginning of one."""


@operations.command("list")
@click.option("--team", help="Only operations of the team with this id or name.")
@click.option("--database", help="Only operations on this database: a uuid, the beginning of one, or a unique name.")
@click.option("--status", type=click.Choice([status.value for status in OperationStatus]))
@click.option("--type", type=click.Choice([type.value for type in OperationType]))
@click.option("--open", "only_open", is_flag=True, help="Only operations that have not ended.")
@click.option("--overdue", is_flag=True, help="Only operations that are open after their deadline.")
@click.option("--limit", type=POSITIVE, help=f"The most lines; {SHOWN} by default, all with --json.")
@shown
async def list_operations(
    team: str | None,
    database: str | None,
    status: str | None,
    type: str | None,
    only_open: bool,
    overdue: bool,
    limit: int | None,
) -> Rows:
    """Show operations, newest first."""
    async with store():
        if team is not None:
            await teams.check_known(team)
        filters = OperatorFilters(
            team=team,
            database=None if database is None else await databases.resolve(database, deleted=None),
            status=None if status is None else OperationStatus(status),
            type=None if type is None else OperationType(type),
            open=only_open,
            overdue=overdue,
        )
        rows = await inventory.list_lines(filters, limit)
        total = await inventory.count(filters)
    return Rows(rows=rows, total=total, noun="operations", max_rows=limit or SHOWN)


@operations.command("show")
@_operation
@shown
async def show_operation(operation: str) -> OperatorOperationView:
    """Show everything about one operation, with a link to its workflow."""
    async with store():
        return await _details(await inventory.resolve(operation))


@operations.command("cancel")
@_operation
@click.option("--yes", is_flag=True, help="Don't ask for confirmation.")
@shown
async def cancel_operation(operation: str, yes: bool) -> OperatorOperationView:
    """Undo what an operation has changed so far, and end it. A cancelled create leaves no database."""
    async with store():
        uuid = await inventory.resolve(operation)
        found = await _details(uuid)
        if not yes:
            what = f"{found.type.value} of {found.database} ({found.database_uuid}) of {found.team}"
            click.confirm(f"Cancel the {what}?", abort=True, err=True)
        async with change(Action.OPERATION_CANCEL, ("operation", uuid)):
            await operation_service.cancel_any(plans(), CANCELLATIONS, uuid)
        return await _details(uuid)


@operations.command("retry")
@_operation
@shown
async def retry_operation(operation: str) -> OperatorOperationView:
    """Have an operation that waits make its next attempt now, not at the end of its pause."""
    async with store():
        uuid = await inventory.resolve(operation)
        async with change(Action.OPERATION_RETRY, ("operation", uuid)):
            await operation_service.retry_any(uuid)
        return await _details(uuid)


async def _details(operation: UUID) -> OperatorOperationView:
    """Raises `NotFound`."""
    return operation_view(settings(), require_found(await inventory.find(operation), "operation"))
