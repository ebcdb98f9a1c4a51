"""`headwater usage`: the ledger of all teams."""

from datetime import datetime
from decimal import Decimal
from uuid import UUID

import msgspec
import rich_click as click

from app.cli.installation import store
from app.cli.output import shown
from app.cli.parameters import POSITIVE
from app.cli.tables import SHOWN, Rows
from app.cli.writing import writing
from app.usage.asking import read_query
from app.usage.report import Clock, Granularity, GroupBy, UsageQuery, read_clock, stream_lines
from app.usage.schemas import UsageView
from app.usage.views import csv_rows, views

_PAGE = 5000


class UsedLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line of `GET /usage`, the most informative columns first."""

    team: str | None
    database: str | None
    plan: str | None
    region: str | None
    runtime_seconds: int
    storage_byte_seconds: Decimal
    backup_byte_seconds: Decimal
    starts_at: datetime
    ends_at: datetime
    open: bool
    team_id: int | None
    database_uuid: UUID | None
    measured_at: datetime | None


@click.command("usage")
@click.option(
    "--from", "since", metavar="TIME", help="A date, or a time with its offset; the 1st of the month unless given."
)
@click.option("--to", "until", metavar="TIME", help="Now unless given.")
@click.option("--group-by", type=click.Choice([one.value for one in GroupBy]), default=GroupBy.TEAM.value)
@click.option("--granularity", type=click.Choice([one.value for one in Granularity]), default=Granularity.TOTAL.value)
@click.option("--team", type=POSITIVE, help="Only the team with this id.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@shown
async def usage(
    since: str | None, until: str | None, group_by: str, granularity: str, team: int | None, as_csv: bool
) -> Rows | None:
    """Show what the databases of all teams used: seconds in which they were active, and byte-seconds of storage and
    backups. By teams, and in one line each, unless asked otherwise."""
    command = click.get_current_context()
    if as_csv and command is not None and command.params["as_json"]:
        raise click.UsageError("Give --csv or --json, not both.")
    async with store():
        clock = await read_clock()
        query = read_query(
            since=since,
            until=until,
            group_by=group_by,
            granularity=granularity,
            now=clock.now,
            team_ids=None if team is None else [team],
        )
        if as_csv:
            await _print_csv(query, clock)
            return None
        rows = [
            _line(view)
            async for page in stream_lines(query, clock, page=_PAGE)
            for view in await views(query.group_by, page)
        ]
    return Rows(rows=rows, total=len(rows), noun="lines", max_rows=SHOWN)


async def _print_csv(query: UsageQuery, clock: Clock) -> None:
    with writing():
        click.echo(csv_rows([], header=True), nl=False)
    async for page in stream_lines(query, clock, page=_PAGE):
        rows = csv_rows(await views(query.group_by, page), header=False)
        with writing():
            click.echo(rows, nl=False)


def _line(view: UsageView) -> UsedLine:
    return UsedLine(
        team=view.team_name,
        database=view.database_name,
        plan=view.plan,
        region=view.region,
        starts_at=view.starts_at,
        ends_at=view.ends_at,
        open=view.open,
        runtime_seconds=view.runtime_seconds,
        storage_byte_seconds=view.storage_byte_seconds,
        backup_byte_seconds=view.backup_byte_seconds,
        team_id=view.team_id,
        database_uuid=view.database_uuid,
        measured_at=view.measured_at,
    )
