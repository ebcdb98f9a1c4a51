"""Rows of rotations: each statement a move from one status to another, which is made once however often it is tried."""

from datetime import datetime, timedelta
from uuid import UUID

import msgspec

from app.contracts.credentials import RotationStatus
from app.core.secrets import SecretLocation
from app.store.columns import columns_of
from app.store.sealed import SealedColumn
from app.store.session import execute, fetch_all, fetch_exists, fetch_one, fetch_value
from app.store.tables.credentials import CredentialRotation

SECRETS_KEPT = timedelta(days=2)
"""How long the password that a rotation made stays in its row: longer than any Idempotency-Key lasts."""


class RotationRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A row of `credential_rotations` with its database's uuid."""

    id: int
    uuid: UUID
    database_id: int
    database: UUID
    status: RotationStatus
    overlap_seconds: int
    end_sessions: bool
    login_name: str
    password_sealed: bytes | None
    previous_login: str
    previous_sealed: bytes | None
    previous_created_at: datetime | None
    retires_at: datetime | None
    proven_at: datetime | None
    completed_at: datetime | None
    created_at: datetime

    @property
    def answered(self) -> bool:
        """Whether it has come to what its request asked for. Without an overlap that is its end."""
        return self.status is RotationStatus.COMPLETED or (
            self.overlap_seconds > 0 and self.status in (RotationStatus.OVERLAPPING, RotationStatus.RETIRING)
        )


class NewRotation(msgspec.Struct, frozen=True, kw_only=True):
    uuid: UUID
    database_id: int
    overlap_seconds: int
    end_sessions: bool
    login_name: str
    password_sealed: bytes
    previous_login: str
    previous_sealed: bytes
    previous_created_at: datetime


_SELECT = f"""
SELECT {columns_of(CredentialRotation, "r")}, d.uuid AS database
FROM credential_rotations r JOIN databases d ON d.id = r.database_id
"""  # noqa: S608 - our own words

_PAGE = f"""
{_SELECT}
WHERE r.database_id = $1
  AND ($2::uuid IS NULL OR r.id < (SELECT id FROM credential_rotations WHERE uuid = $2 AND database_id = $1))
ORDER BY r.id DESC LIMIT $3
"""  # noqa: S608 - our own words


async def insert(new: NewRotation) -> None:
    await execute(
        """
        INSERT INTO credential_rotations (uuid, database_id, status, overlap_seconds, end_sessions, login_name,
                                          password_sealed, previous_login, previous_sealed, previous_created_at)
        VALUES ($1, $2, 'pending', $3, $4, $5, $6, $7, $8, $9)
        """,
        *msgspec.structs.astuple(new),
    )


async def find(rotation: UUID) -> RotationRecord | None:
    return await fetch_one(RotationRecord, f"{_SELECT} WHERE r.uuid = $1", rotation)


async def find_owned(rotation: UUID, team_ids: list[int]) -> RotationRecord | None:
    """The rotation, if its database is one of these teams' and not deleted."""
    return await fetch_one(
        RotationRecord,
        f"{_SELECT} WHERE r.uuid = $1 AND d.team_id = any($2::bigint[]) AND d.status <> 'deleted'",
        rotation,
        team_ids,
    )


async def team_of(rotation: UUID, team_ids: list[int]) -> int | None:
    """Which of these teams has the rotation's database, unless that is deleted."""
    return await fetch_value(
        int,
        "SELECT d.team_id FROM credential_rotations r JOIN databases d ON d.id = r.database_id"
        " WHERE r.uuid = $1 AND d.team_id = any($2::bigint[]) AND d.status <> 'deleted'",
        rotation,
        team_ids,
    )


async def list_of(database_id: int, *, after: UUID | None, limit: int) -> list[RotationRecord]:
    """The rotations of a database, newest first, from the one that follows `after` on."""
    return await fetch_all(
        RotationRecord,
        _PAGE,
        database_id,
        after,
        limit,
    )


async def is_of(database_id: int, rotation: UUID) -> bool:
    return await fetch_exists(
        "SELECT 1 FROM credential_rotations WHERE uuid = $1 AND database_id = $2", rotation, database_id
    )


async def find_under_way(database_id: int) -> RotationRecord | None:
    """The rotation of a database that has not ended. There is never a second."""
    return await fetch_one(
        RotationRecord,
        f"{_SELECT} WHERE r.database_id = $1 AND r.status IN ('pending', 'overlapping', 'retiring', 'cancelling')",
        database_id,
    )


async def find_overlapping(database_id: int) -> RotationRecord | None:
    """The same, while both passwords are good; else None."""
    found = await find_under_way(database_id)
    return found if found is not None and found.status is RotationStatus.OVERLAPPING else None


async def begin_overlap(rotation: int) -> bool:
    """`pending` to `overlapping`, or to `retiring` where there is no overlap: a login has proven the new credentials.
    False where it is not pending any more."""
    return bool(
        await execute(
            """
            UPDATE credential_rotations SET proven_at = now(), changed_at = now(),
                   retires_at = now() + make_interval(secs => overlap_seconds),
                   status = CASE WHEN overlap_seconds > 0 THEN 'overlapping' ELSE 'retiring' END
            WHERE id = $1 AND status = 'pending'
            """,
            rotation,
        )
    )


async def begin_retirement(rotation: int) -> bool:
    """`overlapping` to `retiring`, now. False where it is not overlapping."""
    return bool(
        await execute(
            """
            UPDATE credential_rotations
            SET status = 'retiring', changed_at = now(), retires_at = least(retires_at, now())
            WHERE id = $1 AND status = 'overlapping'
            """,
            rotation,
        )
    )


async def begin_due_retirement(database_id: int) -> int:
    """The same for the rotation of a database whose overlap is over; returns how many there were."""
    return await execute(
        "UPDATE credential_rotations SET status = 'retiring', changed_at = now()"
        " WHERE database_id = $1 AND status = 'overlapping' AND retires_at <= now()",
        database_id,
    )


async def begin_cancellation(rotation: int) -> bool:
    """`pending` to `cancelling`. False where it is not pending any more."""
    return bool(
        await execute(
            "UPDATE credential_rotations SET status = 'cancelling', changed_at = now()"
            " WHERE id = $1 AND status = 'pending'",
            rotation,
        )
    )


async def complete(rotation: int) -> None:
    """`retiring` to `completed`: the engine refuses the previous credentials."""
    await execute(
        """
        UPDATE credential_rotations SET status = 'completed', changed_at = now(), completed_at = now(),
               previous_sealed = NULL
        WHERE id = $1 AND status = 'retiring'
        """,
        rotation,
    )


async def record_cancelled(rotation: int) -> None:
    """`cancelling` to `cancelled`: the engine knows nothing of the new credentials."""
    await execute(
        """
        UPDATE credential_rotations SET status = 'cancelled', changed_at = now(), completed_at = now(),
               password_sealed = NULL, previous_sealed = NULL
        WHERE id = $1 AND status = 'cancelling'
        """,
        rotation,
    )


async def end_with_database(database_id: int) -> None:
    """Ends all rotations of a database of which nothing is left."""
    await execute(
        """
        UPDATE credential_rotations SET changed_at = now(), completed_at = coalesce(completed_at, now()),
               password_sealed = NULL, previous_sealed = NULL,
               status = CASE WHEN status IN ('pending', 'cancelling', 'cancelled') THEN 'cancelled'
                             ELSE 'completed' END
        WHERE database_id = $1
        """,
        database_id,
    )


async def delete_secrets(most: int, _age: timedelta) -> int:
    """Deletes the passwords of rotations that ended, once no request can come again for them. See
    `app.upkeep.sweep`."""
    return await execute(
        """
        UPDATE credential_rotations SET password_sealed = NULL WHERE id IN (
            SELECT id FROM credential_rotations
            WHERE password_sealed IS NOT NULL AND status IN ('completed', 'cancelled')
              AND completed_at < now() - $2::interval
            ORDER BY completed_at LIMIT $1 FOR UPDATE SKIP LOCKED
        )
        """,
        most,
        SECRETS_KEPT,
    )


async def delete_old(most: int, age: timedelta) -> int:
    """Deletes the rotations that ended longer than `age` ago. See `app.upkeep.sweep`."""
    return await execute(
        """
        DELETE FROM credential_rotations WHERE id IN (
            SELECT id FROM credential_rotations
            WHERE status IN ('completed', 'cancelled') AND completed_at < now() - $2::interval
            ORDER BY completed_at LIMIT $1 FOR UPDATE SKIP LOCKED
        )
        """,
        most,
        age,
    )


def new_password_place(rotation: UUID) -> SecretLocation:
    return SecretLocation("credential_rotations", "password_sealed", str(rotation))


def previous_password_place(rotation: UUID) -> SecretLocation:
    return SecretLocation("credential_rotations", "previous_sealed", str(rotation))


SEALED_NEW = SealedColumn(table="credential_rotations", column="password_sealed", row="s.uuid::text")
SEALED_PREVIOUS = SealedColumn(table="credential_rotations", column="previous_sealed", row="s.uuid::text")
