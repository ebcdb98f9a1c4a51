"""What clients do to databases. Every function that changes something belongs in the request's transaction, and
returns the workflow that the change asks for, to be started after the commit."""

from datetime import datetime, timedelta
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from app.audit.actions import Action
from app.audit.drafts import note_difference
from app.audit.events import append
from app.auth.principal import Principal
from app.auth.roles import Role
from app.auth.teams import get_team
from app.backups.restores import in_place
from app.contracts.base import DatabaseStatus
from app.core.clock import utc_now
from app.core.errors import (
    DeletionProtected,
    InvalidField,
    MissingRequiredField,
    NotFound,
    RestorationInProgress,
    require_found,
)
from app.credentials import shares
from app.databases import expiry, records, states
from app.databases.deletion import request_deletion
from app.databases.filters import DatabaseFilters, check_regions
from app.databases.labels import change_labels, label_map
from app.databases.limits import change_limits, check_pending
from app.databases.pool.eviction import room_on_host
from app.databases.records import DatabaseRecord
from app.databases.retention import end_oldest
from app.databases.schemas import ChangeDatabase, ChangeQuotas, changed
from app.databases.search import search
from app.databases.views import append_event
from app.hosts.records import known_regions
from app.outbox.event_types import EventType
from app.outbox.workflow_starts import Accepted
from app.provisioning.lifecycle import NO_GRACE, note_deleted
from app.quotas.plans import Plans, Quotas, check_quotas, limits_in_force
from app.store.session import transaction


async def get(principal: Principal, database: UUID) -> DatabaseRecord:
    """Raises `NotFound`."""
    return await records.get_owned(database, principal.team_ids)


async def get_any(database: UUID) -> DatabaseRecord:
    """The row in whatever state. Raises `NotFound` when there never was one."""
    return require_found(await records.find(database), "database")


async def list_page(
    principal: Principal, filters: DatabaseFilters, *, starting_after: UUID | None, limit: int
) -> tuple[list[DatabaseRecord], bool]:
    """A page of the databases that match, newest first, and whether more follows. Raises `SearchTooWide`, and
    `InvalidField` for a region that does not exist, or a cursor that is unknown or not the caller's; the cursor of a
    database deleted since still works."""
    teams, some = principal.team_ids, principal.databases
    if some is not None:
        page = await records.list_some(some, teams, filters, after=starting_after, limit=limit + 1)
    elif filters != DatabaseFilters():
        page = await search(teams, filters, after=starting_after, limit=limit + 1)
    else:
        page = await records.list_owned(teams, after=starting_after, limit=limit + 1)
    if not page:
        check_regions(filters.regions, await known_regions() if filters.regions else ())
        if starting_after is not None and await records.team_of(starting_after, principal.team_ids) is None:
            raise InvalidField("starting_after", "This is not the uuid of a database of yours.")
    return page[:limit], len(page) > limit


async def list_deleted(
    principal: Principal, filters: DatabaseFilters, *, starting_after: UUID | None, limit: int
) -> tuple[list[DatabaseRecord], bool]:
    """A page of the deleted databases that match and can be undeleted, the one first that was deleted last, and whether
    more follows. Raises `InvalidField` for a region that does not exist, or a cursor that is unknown or not the
    caller's; the cursor of one undeleted or destroyed since still works."""
    page = await records.list_deleted(principal.team_ids, filters, after=starting_after, limit=limit + 1)
    if not page:
        check_regions(filters.regions, await known_regions() if filters.regions else ())
        if starting_after is not None and not await records.was_deleted(starting_after, principal.team_ids):
            raise InvalidField("starting_after", "This is not the uuid of a deleted database of yours.")
    return page[:limit], len(page) > limit


async def change(principal: Principal, database: UUID, wanted: ChangeDatabase) -> Accepted:
    """Changes a database's name, its protection, when it deletes itself, or its labels: only our own row changes.
    Raises `NotFound`, `InvalidField`, `MissingRequiredField` when nothing is asked for, or `InsufficientRole` where it
    would delete itself sooner: that takes the role of a deletion."""
    _check_given(wanted)
    record = await _owned_for_update(principal, database)
    if isinstance(wanted.expires_at, datetime) and (record.expires_at is None or wanted.expires_at < record.expires_at):
        assert record.team_id is not None, "it is one of the caller's teams'"
        principal.check_role(record.team_id, (Role.ADMIN, Role.OWNER))
    await _change(record, wanted, principal.admitted_at)
    return Accepted(subject=str(database), settled=True)


async def change_any(database: UUID, wanted: ChangeDatabase) -> None:
    """The same for an operator, on any team's database. Raises as `change` does."""
    _check_given(wanted)
    await _change(await records.get_live(database, lock=True), wanted, utc_now())


async def change_quotas(plans: Plans, principal: Principal, database: UUID, change: ChangeQuotas) -> Accepted:
    """Raises `NotFound`, `PlanLimitExceeded`, `TooManyUnderWay`, or `InvalidField` when the host has no room for more
    connections, or the database's users have more. The subject is the database with the revision of its limits:
    `read_limits_subject` reads it."""
    record = await _owned_for_update(principal, database)
    assert record.team_id is not None, "it is one of the caller's teams'"
    check_pending("changes_of_limits", record.limits_revision, record.limits_applied)
    team = await get_team(record.team_id)
    quotas = change.over(record.quotas)
    # What it doesn't speak of stays, be it above what the team's tier could ask for nowadays.
    check_quotas(plans, team.tier, record.plan, change.over(Quotas()))
    # What is in force may be other than the plan's, for lack of room or for what its users have. See `plan_changes`.
    connections = record.connections
    if quotas.connection_hard_limit != record.quotas.connection_hard_limit:
        connections = limits_in_force(plans, record.plan, quotas).connection_hard_limit
    if connections < record.connections:
        await shares.check_limit(record.id, connections)
    if connections > record.connections:
        await _check_room(record, connections)
    start = await change_limits(record, quotas, connections)
    note_difference(msgspec.structs.asdict(record.quotas), msgspec.structs.asdict(quotas))
    return Accepted(subject=f"{database}/{record.limits_revision + 1}", start=start)


def read_limits_subject(subject: str) -> tuple[UUID, int | None]:
    """The database and the revision; the revision is None in a subject that an earlier release has written."""
    database, _, revision = subject.partition("/")
    return UUID(database), int(revision) if revision else None


async def delete(plans: Plans, principal: Principal, database: UUID, grace: timedelta) -> Accepted:
    """Marks a database deleted, and ends the grace of the team's oldest deleted ones beyond what its tier retains.
    Access ends when the workflow has revoked it, which the caller waits for. Raises `NotFound`, `DeletionProtected`, or
    `RestorationInProgress` while its data is being exchanged."""
    record = await records.lock_with_team(await get(principal, database))
    if record.deletion_protection:
        raise DeletionProtected()
    await in_place.expect_not_exchanging(record)
    return await _delete(plans, record, grace)


async def delete_any(plans: Plans, database: UUID, grace: timedelta, *, even_if_protected: bool = False) -> Accepted:
    """The same for an operator, on any team's database. Raises `NotFound`, `RestorationInProgress`, and
    `DeletionProtected` unless `even_if_protected`."""
    record = await records.lock_with_team(await records.get_live(database))
    if record.deletion_protection and not even_if_protected:
        raise DeletionProtected()
    await in_place.expect_not_exchanging(record)
    return await _delete(plans, record, grace)


async def delete_expired(plans: Plans, database: UUID, grace: timedelta) -> bool:
    """The same for a database whose `expires_at` has come, in the name of nobody. False, and nothing is done, where it
    is not due: the moment was moved or taken away, somebody deleted the database, or a restore is replacing its
    data."""
    async with transaction():
        found = await records.find(database)
        if found is None or found.status is DatabaseStatus.DELETED:
            return False
        try:
            record = await records.lock_with_team(found)
        except NotFound:
            return False
        if not await expiry.is_expired(record):
            return False
        try:
            await in_place.expect_not_exchanging(record)
        except RestorationInProgress:
            return False
        await announce_expiry(plans, database)
        await _delete(plans, record, grace, relayed=True)
        await append(Action.DATABASE_EXPIRE, ("database", database), team_id=record.team_id)
        return True


async def announce_expiry(plans: Plans, database: UUID) -> None:
    """Writes the event of an end that is near, once for each moment that was set."""
    async with transaction():
        if await expiry.note_announced(database):
            await append_event(plans, EventType.DATABASE_EXPIRING, database)


async def _delete(plans: Plans, record: DatabaseRecord, grace: timedelta, *, relayed: bool = False) -> Accepted:
    """Deletes a database, with the team and the row locked."""
    assert record.team_id is not None, "it is one of a team's"
    provisioning = record.status is DatabaseStatus.PROVISIONING
    destroy_at = await note_deleted(
        plans, record, grace=NO_GRACE if provisioning else grace, cancelled_jobs=int(provisioning)
    )
    start = await request_deletion(record, destroy_at=destroy_at, cancel_provisioning=provisioning, relayed=relayed)
    await end_oldest(plans, record.team_id)
    return Accepted(subject=str(record.uuid), start=start)


def _check_given(wanted: ChangeDatabase) -> None:
    if all(value is UNSET for value in msgspec.structs.astuple(wanted)):
        raise MissingRequiredField("name")


async def _change(record: DatabaseRecord, wanted: ChangeDatabase, now: datetime) -> None:
    protected = changed(wanted.deletion_protection, record.deletion_protection)
    expires_at = changed(wanted.expires_at, record.expires_at)
    if expires_at != record.expires_at:
        expiry.check_expiry(expires_at, now)
    asked = "expires_at" if isinstance(wanted.expires_at, datetime) else "deletion_protection"
    expiry.check_protection(deletion_protection=protected, expires_at=expires_at, field=asked)
    name = changed(wanted.name, record.name)
    labels = record.labels if isinstance(wanted.labels, UnsetType) else change_labels(record.labels, wanted.labels)
    await states.change(record, name=name, deletion_protection=protected, expires_at=expires_at, labels=labels)
    note_difference(
        {
            "name": record.name,
            "deletion_protection": record.deletion_protection,
            "expires_at": record.expires_at,
            "labels": label_map(record.labels),
        },
        {
            "name": name,
            "deletion_protection": protected,
            "expires_at": expires_at,
            "labels": label_map(labels),
        },
    )


async def _owned_for_update(principal: Principal, database: UUID) -> DatabaseRecord:
    return await records.get_owned(database, principal.team_ids, lock=True)


async def _check_room(record: DatabaseRecord, connections: int) -> None:
    room = await room_on_host(record.host_id, connections, allocated=record.connections)
    if connections > room:
        raise InvalidField("connection_hard_limit", f"The database's host has room for {room} connections.")
