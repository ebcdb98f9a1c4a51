"""What clients do to a database's credentials and users. Every function that changes something belongs in the request's
transaction, and returns the workflow that the change asks for, to be started after the commit."""

import re
from uuid import UUID

from msgspec import UNSET

from app.audit.drafts import note
from app.auth.keys import check_expiry
from app.auth.principal import Principal
from app.contracts.base import DatabaseStatus
from app.contracts.credentials import RotationStatus
from app.core.clock import utc_now
from app.core.errors import (
    DatabaseNotActive,
    InvalidField,
    PlanLimitExceeded,
    RotationInProgress,
    RotationNotOverlapping,
    UserExists,
    UserNotActive,
    require_found,
)
from app.core.ids import engine_password, new_uuid
from app.core.secrets import SecretBox
from app.credentials import rotations, shares, users
from app.credentials.accounts import rotated_login, user_login
from app.credentials.operation import accept_rotation
from app.credentials.requests import request_apply
from app.credentials.rotations import NewRotation, RotationRecord, new_password_place, previous_password_place
from app.credentials.schemas import (
    DEFAULT_OVERLAP_SECONDS,
    USER_NAME,
    CreateDatabaseUser,
    RotateCredentials,
    RotateDatabaseUser,
)
from app.credentials.users import DatabaseUserRecord, NewDatabaseUser, next_password_place, user_password_place
from app.databases import credentials, records
from app.databases.passwords import tenant_of
from app.databases.records import DatabaseRecord
from app.engines.registry import ADAPTERS
from app.outbox.workflow_starts import Accepted
from app.quotas.plans import Plans

ROTATION, USER = "credential rotation", "user"


async def rotate(box: SecretBox, principal: Principal, database: UUID, request: RotateCredentials) -> Accepted:
    """Gives the database a new password, and on engines that need one a new user name. The subject is the rotation.
    Raises `NotFound`, `DatabaseNotActive` or `RotationInProgress`."""
    record = await records.get_owned(database, principal.team_ids, lock=True)
    return await _rotate(box, record, request)


async def rotate_any(box: SecretBox, database: UUID, request: RotateCredentials) -> Accepted:
    """The same for an operator, for a database of any team."""
    return await _rotate(box, await records.get_live(database, lock=True), request)


async def _rotate(box: SecretBox, record: DatabaseRecord, request: RotateCredentials) -> Accepted:
    _expect_active(record)
    under_way = await rotations.find_under_way(record.id)
    if under_way is not None:
        raise RotationInProgress(under_way.uuid)
    revision = await credentials.next_revision(record.id)
    renames = ADAPTERS[record.engine].rotation_renames
    uuid = new_uuid()
    new = NewRotation(
        uuid=uuid,
        database_id=record.id,
        overlap_seconds=DEFAULT_OVERLAP_SECONDS if request.overlap_seconds is UNSET else request.overlap_seconds,
        end_sessions=request.end_sessions is True,
        login_name=rotated_login(record.engine_name, revision) if renames else record.login,
        password_sealed=box.seal(engine_password(), new_password_place(uuid)),
        previous_login=record.login,
        previous_sealed=box.seal(tenant_of(record, box).password, previous_password_place(uuid)),
        previous_created_at=record.credentials_created_at or record.created_at,
    )
    await rotations.insert(new)
    await accept_rotation(record, uuid, revision)
    return Accepted(subject=str(uuid), start=await request_apply(record, revision))


async def complete(principal: Principal, rotation: UUID) -> Accepted:
    """Ends an overlap now. Nothing happens to one that has ended. Raises `NotFound` or `RotationNotOverlapping`."""
    return await _complete(await get_rotation(principal, rotation))


async def complete_any(rotation: UUID) -> Accepted:
    """The same for an operator, for a rotation of any team."""
    return await _complete(require_found(await rotations.find(rotation), ROTATION))


async def _complete(found: RotationRecord) -> Accepted:
    # The database before what it owns, as everything does that changes both.
    record = await records.get_live(found.database, lock=True)
    current = require_found(await rotations.find(found.uuid), ROTATION)
    if current.status in (RotationStatus.RETIRING, RotationStatus.COMPLETED):
        return Accepted(subject=str(found.uuid))
    if not await rotations.begin_retirement(current.id):
        raise RotationNotOverlapping(current.status.value)
    revision = await credentials.next_revision(record.id)
    return Accepted(subject=str(found.uuid), start=await request_apply(record, revision))


async def get_rotation(principal: Principal, rotation: UUID) -> RotationRecord:
    """Raises `NotFound`."""
    found = require_found(await rotations.find_owned(rotation, principal.team_ids), ROTATION)
    principal.check_reach(found.database, ROTATION)
    return found


async def list_rotations(
    record: DatabaseRecord, *, starting_after: UUID | None, limit: int
) -> tuple[list[RotationRecord], bool]:
    """A page, newest first, and whether more follows. Raises `InvalidField` for a cursor that is not of this
    database."""
    if starting_after is not None and not await rotations.is_of(record.id, starting_after):
        raise InvalidField("starting_after", "This is not the uuid of a rotation of this database.")
    page = await rotations.list_of(record.id, after=starting_after, limit=limit + 1)
    return page[:limit], len(page) > limit


async def add_user(
    plans: Plans, box: SecretBox, principal: Principal, database: UUID, request: CreateDatabaseUser
) -> Accepted:
    """Adds a user to the database. The subject is the database and the user. Raises `NotFound`, `DatabaseNotActive`,
    `UserExists`, `PlanLimitExceeded`, or `InvalidField` for an end that has passed or is out of the calendar, and for
    connections that aren't left."""
    record = await records.get_owned(database, principal.team_ids, lock=True)
    return await _add_user(plans, box, record, request)


async def add_user_to_any(plans: Plans, box: SecretBox, database: UUID, request: CreateDatabaseUser) -> Accepted:
    """The same for an operator, for a database of any team."""
    return await _add_user(plans, box, await records.get_live(database, lock=True), request)


async def _add_user(plans: Plans, box: SecretBox, record: DatabaseRecord, request: CreateDatabaseUser) -> Accepted:
    _expect_active(record)
    if request.expires_at is not None:
        if request.expires_at <= utc_now():
            raise InvalidField("expires_at", "This moment has passed.")
        check_expiry(request.expires_at)
    existing = await users.list_of(record.id)
    for user in existing:
        if user.name == request.name:
            raise UserExists(user.name, user.status.value)
    most = plans.by_name[record.plan].users
    if len(existing) >= most:
        raise PlanLimitExceeded(f"A database of the plan {record.plan} can have {most} users.", field="plan")
    limit = shares.for_user(record.connections, [user.connection_limit for user in existing], request.connection_limit)
    revision = await credentials.next_revision(record.id)
    uuid = new_uuid()
    new = NewDatabaseUser(
        uuid=uuid,
        database_id=record.id,
        name=request.name,
        login_name=user_login(record.engine_name, revision),
        access=request.access,
        connection_limit=limit,
        password_sealed=box.seal(engine_password(), user_password_place(uuid)),
        expires_at=request.expires_at,
    )
    await users.insert(new)
    note(changes={"user": (None, new.name), "access": (None, new.access.value)})
    return Accepted(subject=f"{record.uuid}/{uuid}", start=await request_apply(record, revision))


async def remove_user(principal: Principal, database: UUID, name: str) -> Accepted:
    """Ends a user's access and removes its account. What it owns becomes the database's. Raises `NotFound`."""
    record = await records.get_owned(database, principal.team_ids, lock=True)
    return await _remove_user(record, name)


async def remove_user_of_any(database: UUID, name: str) -> Accepted:
    """The same for an operator, for a database of any team."""
    return await _remove_user(await records.get_live(database, lock=True), name)


async def _remove_user(record: DatabaseRecord, name: str) -> Accepted:
    user = require_found(await _find_user(record, name), USER)
    note(changes={"user": (name, None)})
    subject = f"{record.uuid}/{user.uuid}"
    if not await users.begin_removal(user.id):
        return Accepted(subject=subject)
    revision = await credentials.next_revision(record.id)
    return Accepted(subject=subject, start=await request_apply(record, revision))


async def rotate_user(
    box: SecretBox, principal: Principal, database: UUID, name: str, request: RotateDatabaseUser
) -> Accepted:
    """Gives a user a new password. The subject is the database, the user and the rotation. Raises `NotFound`,
    `DatabaseNotActive` or `UserNotActive`."""
    record = await records.get_owned(database, principal.team_ids, lock=True)
    return await _rotate_user(box, record, name, request)


async def rotate_user_of_any(box: SecretBox, database: UUID, name: str, request: RotateDatabaseUser) -> Accepted:
    """The same for an operator, for a database of any team."""
    return await _rotate_user(box, await records.get_live(database, lock=True), name, request)


async def _rotate_user(box: SecretBox, record: DatabaseRecord, name: str, request: RotateDatabaseUser) -> Accepted:
    user = require_found(await _find_user(record, name), USER)
    _expect_active(record)
    rotation = new_uuid()
    sealed = box.seal(engine_password(), next_password_place(user.uuid))
    if not await users.begin_rotation(user.id, rotation, sealed, end_sessions=request.end_sessions is True):
        raise UserNotActive(user.name, user.status.value)
    note(changes={"rotated": (None, user.name)})
    revision = await credentials.next_revision(record.id)
    return Accepted(subject=f"{record.uuid}/{user.uuid}/{rotation}", start=await request_apply(record, revision))


async def list_users(
    record: DatabaseRecord, *, starting_after: str | None, limit: int
) -> tuple[list[DatabaseUserRecord], bool]:
    """A page, newest first, and whether more follows. Raises `InvalidField` for a cursor that is not a user's."""
    if starting_after is not None and await _find_user(record, starting_after) is None:
        raise InvalidField("starting_after", "This is not the name of a user of this database.")
    page = await users.list_page(record.id, after=starting_after, limit=limit + 1)
    return page[:limit], len(page) > limit


async def _find_user(record: DatabaseRecord, name: str) -> DatabaseUserRecord | None:
    """The user of that name, or None. Our own database is not asked for what can't be a name."""
    return await users.find_named(record.id, name) if re.fullmatch(USER_NAME, name) else None


def _expect_active(record: DatabaseRecord) -> None:
    """Raises `DatabaseNotActive` unless the database is active: nothing can be proven where nobody may enter."""
    if record.status is not DatabaseStatus.ACTIVE:
        raise DatabaseNotActive(record.status.value)
