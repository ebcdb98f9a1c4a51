"""Lines of a report with what their groups are called, and as CSV."""

import csv
import io
from collections.abc import Sequence
from uuid import UUID

import msgspec

from app.auth.teams import names_of_teams
from app.databases.records import names_of
from app.quotas.usage import measured_at
from app.usage.asking import line_id
from app.usage.report import GroupBy, UsageLine
from app.usage.schemas import UsageView

COLUMNS = tuple(name for name in UsageView.__struct_fields__ if name not in ("object", "id"))
"""The columns of the CSV."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""The first characters of cells that a spreadsheet takes for formulas; the last are wide forms of the first."""


async def views(group_by: GroupBy, lines: Sequence[UsageLine]) -> list[UsageView]:
    """The views of these lines, in the same order."""
    match group_by:
        case GroupBy.DATABASE:
            return await _of_databases(lines)
        case GroupBy.TEAM:
            names = await names_of_teams([line.team_id for line in lines])
            return [_view(line, team_id=line.team_id, team_name=names.get(line.team_id)) for line in lines]
        case GroupBy.PLAN:
            return [_view(line, plan=line.key) for line in lines]
        case GroupBy.REGION:
            return [_view(line, region=line.key) for line in lines]


async def _of_databases(lines: Sequence[UsageLine]) -> list[UsageView]:
    databases = {line.key: UUID(line.key) for line in lines}
    names = await names_of(list(databases.values()))
    measured = await measured_at([databases[line.key] for line in lines if line.open])
    found = []
    for line in lines:
        uuid = databases[line.key]
        name, team = names.get(uuid, (None, None))
        found.append(
            _view(
                line,
                database_uuid=uuid,
                database_name=name,
                team_id=line.team_id,
                team_name=team,
                measured_at=measured.get(uuid) if line.open else None,
            )
        )
    return found


def _view(line: UsageLine, **group: object) -> UsageView:
    return UsageView(
        id=line_id(line.starts_at, line.key),
        starts_at=line.starts_at,
        ends_at=line.ends_at,
        open=line.open,
        runtime_seconds=line.runtime_seconds,
        storage_byte_seconds=line.storage_byte_seconds,
        backup_byte_seconds=line.backup_byte_seconds,
        **group,  # type: ignore[arg-type]  # fields of the struct
    )


def csv_rows(views: Sequence[UsageView], *, header: bool) -> str:
    """The views as CSV (RFC 4180), with a header if asked for. No cell is a formula to a spreadsheet: tenants choose
    names."""
    text = io.StringIO()
    writer = csv.writer(text)
    if header:
        writer.writerow(COLUMNS)
    for view in views:
        values = msgspec.to_builtins(view)
        writer.writerow(_cell(values[name]) for name in COLUMNS)
    return text.getvalue()


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    text = "" if value is None else str(value)
    return f"'{text}" if text.startswith(_FORMULA) else text
