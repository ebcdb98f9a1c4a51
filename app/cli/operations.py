"""`headwater operations`: the changes of all teams' databases that take time."""

from typing import Any
from urllib.parse import quote
from uuid import UUID

import msgspec
import rich_click as click

from app.audit.actions import Action
from app.audit.events import change
from app.cli.installation import plans, settings, store
from app.cli.output import shown
from app.cli.parameters import POSITIVE
from app.cli.tables import Rows
from app.core.errors import require_found
from app.core.settings import Settings
from app.databases import inventory as databases
from app.databases.records import names_of
from app.operations import inventory, records
from app.operations.inventory import OperatorFilters
from app.operations.kinds import OperationStatus, OperationType
from app.operations.records import OperationRecord
from app.operations.schemas import OperationView
from app.operations.views import view
from app.provisioning import operation_service
from app.provisioning.cancelling import CANCELLATIONS

_SHOWN = 100
"""The maximum of lines in a list, unless `--limit` is given. `--json` prints all."""


class OperationDetails(OperationView, kw_only=True):
    """An operation as its team sees it, and what helps operators."""

    team_id: int
    team: str | None
    database: str | None
    """Its name."""
    overdue_since: str | None
    temporal_url: str | None
    """Its workflow in Temporal's pages."""


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
@click.option("--limit", type=POSITIVE, help=f"The maximum of lines; {_SHOWN} by default, all with --json.")
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
    return Rows(rows=rows, total=total, noun="operations", max_rows=limit or _SHOWN)


@operations.command("show")
@_operation
@shown
async def show_operation(operation: str) -> OperationDetails:
    """Show everything about one operation, with a link to its workflow."""
    async with store():
        return await _details(await inventory.resolve(operation))


@operations.command("cancel")
@_operation
@click.option("--yes", is_flag=True, help="Don't ask for confirmation.")
@shown
async def cancel_operation(operation: str, yes: bool) -> OperationDetails:
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
async def retry_operation(operation: str) -> OperationDetails:
    """Have an operation that waits make its next attempt now, not at the end of its pause."""
    async with store():
        uuid = await inventory.resolve(operation)
        async with change(Action.OPERATION_RETRY, ("operation", uuid)):
            await operation_service.retry_any(uuid)
        return await _details(uuid)


async def _details(operation: UUID) -> OperationDetails:
    """Raises `NotFound`."""
    record = require_found(await records.find(operation), "operation")
    name, team = (await names_of([record.database])).get(record.database, (None, None))
    return OperationDetails(
        **msgspec.structs.asdict(view(record)),
        team_id=record.team_id,
        team=team,
        database=name,
        overdue_since=None if record.overdue_at is None else record.overdue_at.isoformat(),
        temporal_url=_temporal_url(settings(), record),
    )


def _temporal_url(known: Settings, record: OperationRecord) -> str | None:
    if known.temporal_ui_url is None or record.workflow_id is None:
        return None
    namespace, workflow = quote(known.temporal_namespace, safe=""), quote(record.workflow_id, safe="")
    return f"{known.temporal_ui_url.rstrip('/')}/namespaces/{namespace}/workflows/{workflow}"
