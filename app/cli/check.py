"""`headwater check`: whether everything is consistent."""

from uuid import UUID

import msgspec
import rich_click as click

from app.cli.installation import secret_box, settings, store
from app.cli.output import shown
from app.core.ids import find_uuid
from app.databases.records import names_of
from app.upkeep.reconcile import service
from app.upkeep.reconcile.findings import Report, Violation
from app.upkeep.reconcile.host_resources import missing_extensions
from app.upkeep.reconcile.schedules import check_schedules_at


@click.command()
@shown
async def check() -> Report:
    """Compare our records with themselves, the hosts and Temporal. Changes nothing; exits with 1 on a violation."""
    box, known = secret_box(), settings()
    schedules = await check_schedules_at(known)
    async with store():
        others = [*schedules, *await missing_extensions(known.postgres_extensions)]
        report = await service.check(box, known.orphan_age, others)
        return await _named(report)


async def _named(report: Report) -> Report:
    """Adds the names of databases and teams."""
    uuids = [find_uuid(one.subject) for one in (*report.violations, *report.notes)]
    names = await names_of([uuid for uuid in uuids if uuid is not None])

    def named(one: Violation) -> Violation:
        name, team = names.get(find_uuid(one.subject) or UUID(int=0), (None, None))
        return msgspec.structs.replace(one, name=name, team=team)

    return msgspec.structs.replace(
        report, violations=[named(one) for one in report.violations], notes=[named(one) for one in report.notes]
    )
