"""When backups of a database are taken and tested, and how long they are kept: the plan's rules, with what the database
has of its own over them."""

from datetime import datetime, timedelta
from uuid import UUID

import msgspec

from app.backups.admission import BackupLimits
from app.backups.schemas import BackupPolicyView, ChangeBackupPolicy
from app.core.settings import Settings
from app.databases.records import DatabaseRecord
from app.databases.schemas import changed
from app.quotas.plans import BackupRules, Plans
from app.store.session import execute, fetch_one, fetch_scalar


class BackupTerms(msgspec.Struct, frozen=True, kw_only=True):
    """What is the same for all backups of an installation; one for each process."""

    plans: Plans
    hour: timedelta
    """The unit that policies count in; a day is 24 of them."""
    limits: BackupLimits
    tests_at_once: int = 1
    """Restore tests by schedule under way at once in a region."""

    @classmethod
    def of(cls, plans: Plans, settings: Settings) -> "BackupTerms":
        limits = BackupLimits(per_host=settings.backups_per_host, per_team=settings.backups_per_team)
        return cls(
            plans=plans,
            hour=timedelta(seconds=settings.backup_hour_seconds),
            limits=limits,
            tests_at_once=settings.backup_tests_per_region,
        )

    def days(self, number: float) -> timedelta:
        return 24 * number * self.hour


class PolicyRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A row of `backup_policies`. A null means the plan's value."""

    enabled: bool | None = None
    every_hours: int | None = None
    keep_days: int | None = None
    keep_last: int | None = None
    test_every_days: int | None = None
    backup_at: datetime | None = None
    test_at: datetime | None = None

    def over(self, rules: BackupRules) -> BackupRules:
        """The rules in force: this row's values, with the plan's `rules` where it has none."""
        own = {name: getattr(self, name) for name in BackupRules.__struct_fields__}
        return msgspec.structs.replace(rules, **{name: value for name, value in own.items() if value is not None})


async def find(database_id: int) -> PolicyRecord:
    """The database's own policy; an empty one if it has none."""
    found = await fetch_one(
        PolicyRecord,
        "SELECT enabled, every_hours, keep_days, keep_last, test_every_days, backup_at, test_at FROM backup_policies"
        " WHERE database_id = $1",
        database_id,
    )
    return found or PolicyRecord()


async def find_rules(plans: Plans, database_id: int | None, plan: str) -> BackupRules:
    """The rules in force for a database of that plan; the plan's own where the database is not in our records."""
    rules = plans.by_name[plan].backups
    return rules if database_id is None else (await find(database_id)).over(rules)


async def change(terms: BackupTerms, database: DatabaseRecord, wanted: ChangeBackupPolicy) -> None:
    """Changes the policy of a database whose row is locked, and when its next backup and test are due."""
    before = await find(database.id)
    after = msgspec.structs.replace(
        before,
        enabled=changed(wanted.enabled, before.enabled),
        every_hours=changed(wanted.every_hours, before.every_hours),
        keep_days=changed(wanted.keep_days, before.keep_days),
        keep_last=changed(wanted.keep_last, before.keep_last),
        test_every_days=changed(wanted.test_every_days, before.test_every_days),
    )
    rules = after.over(terms.plans.by_name[database.plan].backups)
    await execute(
        """
        INSERT INTO backup_policies AS p (database_id, enabled, every_hours, keep_days, keep_last, test_every_days)
        VALUES ($1, $2, $3, $4, $5, $6)
        ON CONFLICT (database_id) DO UPDATE SET enabled = excluded.enabled, every_hours = excluded.every_hours,
               keep_days = excluded.keep_days, keep_last = excluded.keep_last,
               test_every_days = excluded.test_every_days, changed_at = now()
        """,
        database.id,
        after.enabled,
        after.every_hours,
        after.keep_days,
        after.keep_last,
        after.test_every_days,
    )
    now = await fetch_scalar(datetime, "SELECT now()")
    await schedule(database.id, next_backup(terms, database.uuid, rules, now) if rules.enabled else None)
    if not rules.enabled:
        await schedule_test(database.id, None)
    else:
        await schedule_tested(terms, database.id, rules)


async def schedule(database_id: int, at: datetime | None) -> None:
    """Records when the next backup is due."""
    await execute("UPDATE backup_policies SET backup_at = $2 WHERE database_id = $1", database_id, at)


async def schedule_test(database_id: int, at: datetime | None) -> None:
    """Records when the next restore test is due."""
    await execute("UPDATE backup_policies SET test_at = $2 WHERE database_id = $1", database_id, at)


async def schedule_tested(terms: BackupTerms, database_id: int, rules: BackupRules) -> None:
    """Schedules the next restore test: `test_every_days` after the newest one, or at once where there is a completed
    backup and none was ever tested."""
    await execute(
        """
        UPDATE backup_policies SET test_at = (
            SELECT coalesce(max(b.proof_changed_at) FILTER (WHERE b.proof_status IN ('proven', 'mismatch', 'failed'))
                            + $2::interval, now())
            FROM backups b WHERE b.database_id = $1 HAVING count(*) FILTER (WHERE b.status = 'completed') > 0)
        WHERE database_id = $1
        """,
        database_id,
        terms.days(rules.test_every_days),
    )


def next_backup(terms: BackupTerms, database: UUID, rules: BackupRules, now: datetime) -> datetime:
    """The next time after `now` at which the database's own moment in the interval comes. All databases together are
    spread evenly over the interval, wherever they came from and whenever they were made."""
    interval = (rules.every_hours * terms.hour).total_seconds()
    place = database.int % 1_000_003 / 1_000_003 * interval
    elapsed = (now.timestamp() - place) % interval
    return now + timedelta(seconds=interval - elapsed)


def policy_view(terms: BackupTerms, database: DatabaseRecord, record: PolicyRecord) -> BackupPolicyView:
    rules = record.over(terms.plans.by_name[database.plan].backups)
    return BackupPolicyView(
        database_uuid=database.uuid,
        enabled=rules.enabled,
        every_hours=rules.every_hours,
        keep_days=rules.keep_days,
        keep_last=rules.keep_last,
        test_every_days=rules.test_every_days,
        next_backup_at=record.backup_at if rules.enabled else None,
        next_test_at=record.test_at if rules.enabled else None,
    )
