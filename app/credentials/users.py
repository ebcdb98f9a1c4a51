"""Rows of users: each statement a move from one status to another, which is made once however often it is tried."""

from datetime import datetime
from uuid import UUID

import msgspec

from app.contracts.credentials import DatabaseUserStatus
from app.core.secrets import SecretBox, SecretLocation
from app.engines.base import Access, Login
from app.store.columns import columns_of
from app.store.sealed import SealedColumn
from app.store.session import execute, fetch_all, fetch_one
from app.store.tables.credentials import DatabaseUser

_SELECT = f"SELECT {columns_of(DatabaseUser, 'u')} FROM database_users u"  # noqa: S608 - our own words


class DatabaseUserRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A row of `database_users`."""

    id: int
    uuid: UUID
    database_id: int
    name: str
    login_name: str
    access: Access
    connection_limit: int
    password_sealed: bytes
    rotation: UUID | None
    rotated_at: datetime | None
    next_sealed: bytes | None
    next_rotation: UUID | None
    next_ends_sessions: bool
    status: DatabaseUserStatus
    expires_at: datetime | None
    created_at: datetime

    def login(self, box: SecretBox) -> Login:
        """The account as its engine knows it; with the previous password while it is being rotated."""
        return self._login(self.password(box))

    def next_login(self, box: SecretBox) -> Login:
        """The account with the password that a rotation under way gives it."""
        assert self.next_sealed is not None, "a rotation under way has both passwords"
        return self._login(box.open(self.next_sealed, next_password_place(self.uuid)))

    def password(self, box: SecretBox) -> str:
        return box.open(self.password_sealed, user_password_place(self.uuid))

    def _login(self, password: str) -> Login:
        return Login(name=self.login_name, password=password, access=self.access, connections=self.connection_limit)


class NewDatabaseUser(msgspec.Struct, frozen=True, kw_only=True):
    uuid: UUID
    database_id: int
    name: str
    login_name: str
    access: Access
    connection_limit: int
    password_sealed: bytes
    expires_at: datetime | None


async def insert(new: NewDatabaseUser) -> None:
    await execute(
        """
        INSERT INTO database_users (uuid, database_id, name, login_name, access, connection_limit, password_sealed,
                                    expires_at, status)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'creating')
        """,
        *msgspec.structs.astuple(new),
    )


async def find(user: UUID) -> DatabaseUserRecord | None:
    """The user; None when it is gone."""
    return await fetch_one(DatabaseUserRecord, f"{_SELECT} WHERE uuid = $1", user)


async def find_named(database_id: int, name: str) -> DatabaseUserRecord | None:
    return await fetch_one(DatabaseUserRecord, f"{_SELECT} WHERE database_id = $1 AND name = $2", database_id, name)


async def list_of(database_id: int) -> list[DatabaseUserRecord]:
    """All users of a database, newest first: they are few, for its plan bounds them."""
    return await fetch_all(DatabaseUserRecord, f"{_SELECT} WHERE database_id = $1 ORDER BY id DESC", database_id)


async def list_page(database_id: int, *, after: str | None, limit: int) -> list[DatabaseUserRecord]:
    """Users of a database, newest first, from the one that follows the user named `after` on."""
    return await fetch_all(
        DatabaseUserRecord,
        f"{_SELECT} WHERE database_id = $1 AND ($2::text IS NULL OR id <"  # noqa: S608 - our own words
        " (SELECT id FROM database_users WHERE database_id = $1 AND name = $2)) ORDER BY id DESC LIMIT $3",
        database_id,
        after,
        limit,
    )


async def activate(user: int) -> bool:
    """`creating` to `active`: a login has proven it. False where it is to be removed by now."""
    return bool(
        await execute(
            "UPDATE database_users SET status = 'active', changed_at = now() WHERE id = $1 AND status = 'creating'",
            user,
        )
    )


async def begin_rotation(user: int, rotation: UUID, password_sealed: bytes, *, end_sessions: bool) -> bool:
    """`active` to `rotating`, with the new password, sealed for `next_password_place`. False where it is not active."""
    return bool(
        await execute(
            """
            UPDATE database_users SET status = 'rotating', changed_at = now(),
                   next_rotation = $2, next_sealed = $3, next_ends_sessions = $4
            WHERE id = $1 AND status = 'active'
            """,
            user,
            rotation,
            password_sealed,
            end_sessions,
        )
    )


async def record_rotated(user: int, rotation: UUID, password_sealed: bytes) -> bool:
    """`rotating` to `active`: a login has proven the new password, which is sealed for `user_password_place` now. False
    where this rotation is not under way any more."""
    return bool(
        await execute(
            """
            UPDATE database_users SET status = 'active', changed_at = now(), rotated_at = now(),
                   rotation = next_rotation, password_sealed = $3,
                   next_rotation = NULL, next_sealed = NULL, next_ends_sessions = false
            WHERE id = $1 AND next_rotation = $2 AND status = 'rotating'
            """,
            user,
            rotation,
            password_sealed,
        )
    )


async def record_withdrawn(user: int, rotation: UUID) -> bool:
    """`rotating` to `active`: the engine has the previous password again. False where this rotation is not under way
    any more."""
    return bool(
        await execute(
            """
            UPDATE database_users SET status = 'active', changed_at = now(),
                   next_rotation = NULL, next_sealed = NULL, next_ends_sessions = false
            WHERE id = $1 AND next_rotation = $2 AND status = 'rotating'
            """,
            user,
            rotation,
        )
    )


async def begin_removal(user: int) -> bool:
    """Any status to `removing`. False where it is on its way already."""
    return bool(
        await execute(
            "UPDATE database_users SET status = 'removing', changed_at = now(),"
            " next_rotation = NULL, next_sealed = NULL WHERE id = $1 AND status <> 'removing'",
            user,
        )
    )


async def begin_expired_removals(database_id: int) -> int:
    """Begins the removal of a database's users whose time is over; returns how many there were."""
    return await execute(
        "UPDATE database_users SET status = 'removing', changed_at = now()"
        " WHERE database_id = $1 AND status = 'active' AND expires_at <= now()",
        database_id,
    )


async def delete_removed(user: int) -> None:
    """Deletes the row of a user whose account is gone."""
    await execute("DELETE FROM database_users WHERE id = $1 AND status = 'removing'", user)


async def end_with_database(database_id: int) -> None:
    """Deletes all users of a database of which nothing is left."""
    await execute("DELETE FROM database_users WHERE database_id = $1", database_id)


def user_password_place(user: UUID) -> SecretLocation:
    return SecretLocation("database_users", "password_sealed", str(user))


def next_password_place(user: UUID) -> SecretLocation:
    return SecretLocation("database_users", "next_sealed", str(user))


SEALED_USER_NEXT = SealedColumn(table="database_users", column="next_sealed", row="s.uuid::text")
SEALED_USER = SealedColumn(table="database_users", column="password_sealed", row="s.uuid::text")
