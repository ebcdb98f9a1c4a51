"""Waiting, after the commit, until the engine has followed a change of credentials or users."""

from uuid import UUID

from app.contracts.base import DatabaseStatus
from app.contracts.credentials import DatabaseUserStatus, RotationStatus
from app.core.errors import (
    CredentialsPending,
    DatabaseNotActive,
    NotFound,
    RotationCancelled,
    UserRotationNotInForce,
    require_found,
)
from app.credentials import rotations, users
from app.credentials.rotations import RotationRecord
from app.credentials.users import DatabaseUserRecord
from app.databases import records
from app.store.notify import RowWatch


async def await_rotation(watch: RowWatch, rotation: UUID, timeout: float) -> RotationRecord:
    """A rotation that has come to what its request asked for. Raises `CredentialsPending` after `timeout` seconds, and
    where it was cancelled `NotFound`, `DatabaseNotActive` or `RotationCancelled`, by what became of the database."""
    found = await _rotation(rotation)

    async def look() -> RotationRecord | None:
        seen = await _rotation(rotation)
        return seen if seen.answered or seen.status is RotationStatus.CANCELLED else None

    ended = await watch.wait_for(found.database, look, timeout)
    if ended is None:
        raise CredentialsPending()
    if ended.status is RotationStatus.CANCELLED:
        await _refuse_inaccessible(ended.database)
        raise RotationCancelled(rotation)
    return ended


async def await_completed(watch: RowWatch, rotation: UUID, timeout: float) -> RotationRecord:
    """A rotation whose previous credentials the engine refuses. Raises `CredentialsPending` after `timeout`
    seconds."""
    found = await _rotation(rotation)

    async def look() -> RotationRecord | None:
        seen = await _rotation(rotation)
        return seen if seen.status is RotationStatus.COMPLETED else None

    ended = await watch.wait_for(found.database, look, timeout)
    if ended is None:
        raise CredentialsPending()
    return ended


async def await_user(watch: RowWatch, database: UUID, user: UUID, timeout: float) -> DatabaseUserRecord:
    """A user that the engine has let in. Raises `CredentialsPending` after `timeout` seconds, and where it is gone
    `NotFound` or `DatabaseNotActive`, by what became of the database."""

    async def look() -> tuple[DatabaseUserRecord | None] | None:
        seen = await users.find(user)
        return None if seen is not None and seen.status is DatabaseUserStatus.CREATING else (seen,)

    seen = await watch.wait_for(database, look, timeout)
    if seen is None:
        raise CredentialsPending()
    made = seen[0]
    if made is None or made.status is DatabaseUserStatus.REMOVING:
        await _refuse_inaccessible(database)
        raise NotFound("user")
    return made


async def await_rotated_user(
    watch: RowWatch, database: UUID, user: UUID, rotation: UUID, timeout: float
) -> DatabaseUserRecord:
    """A user that the engine lets in with the password that this rotation made. Raises `CredentialsPending` after
    `timeout` seconds, and where it has another one or is gone `UserRotationNotInForce`, `NotFound` or
    `DatabaseNotActive`, by what became of it."""

    async def look() -> tuple[DatabaseUserRecord | None] | None:
        seen = await users.find(user)
        return None if seen is not None and seen.next_rotation == rotation else (seen,)

    seen = await watch.wait_for(database, look, timeout)
    if seen is None:
        raise CredentialsPending()
    found = seen[0]
    if found is None or found.status is DatabaseUserStatus.REMOVING or found.rotation != rotation:
        await _refuse_inaccessible(database)
        raise NotFound("user") if found is None else UserRotationNotInForce(found.name)
    return found


async def await_removed(watch: RowWatch, database: UUID, user: UUID, timeout: float) -> None:
    """Waits until a user is gone. Raises `CredentialsPending` where its account is not gone within `timeout`
    seconds."""

    async def look() -> bool | None:
        return await users.find(user) is None or None

    if await watch.wait_for(database, look, timeout) is None:
        raise CredentialsPending()


async def _rotation(rotation: UUID) -> RotationRecord:
    return require_found(await rotations.find(rotation), "credential rotation")


async def _refuse_inaccessible(database: UUID) -> None:
    record = await records.get_live(database)
    if record.status is not DatabaseStatus.ACTIVE:
        raise DatabaseNotActive(record.status.value)
