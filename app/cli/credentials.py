"""`headwater databases rotate`, `users` and so on: what logs in to a database. The database's password is not shown:
its team reads it from the API. That of a further user is, for nobody reads it later."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import rich_click as click

from app.audit.actions import Action
from app.audit.events import change
from app.cli.installation import row_watch, sealing_box, secret_box, store
from app.cli.output import shown
from app.core.errors import NotFound
from app.credentials import rotations, service, users
from app.credentials.schemas import (
    DEFAULT_OVERLAP_SECONDS,
    LONGEST_OVERLAP_SECONDS,
    CredentialView,
    DatabaseUserView,
    RotateCredentials,
    RotateDatabaseUser,
    RotationView,
)
from app.credentials.sessions import open_sessions
from app.credentials.views import Sessions, credential_views, rotation_view, user_view
from app.credentials.waiting import await_completed, await_removed, await_rotated_user, await_rotation
from app.databases import inventory, records
from app.databases.records import DatabaseRecord
from app.hosts.adapters import Adapters

_APPLIED_SECONDS = 60.0
"""How long a command waits for the engine."""


def _database(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.argument("database", metavar="DATABASE")(command)


@click.command("rotate")
@_database
@click.option(
    "--overlap",
    type=click.IntRange(0, LONGEST_OVERLAP_SECONDS),
    default=DEFAULT_OVERLAP_SECONDS,
    show_default=True,
    help="For how many seconds the previous password works too.",
)
@click.option(
    "--end-sessions", is_flag=True, help="End all sessions with the overlap where they can't be distinguished."
)
@shown
async def rotate(database: str, overlap: int, end_sessions: bool) -> RotationView:
    """Replace a database's password. Its team reads the new one from the API."""
    async with store():
        record, box = await _record(database), await sealing_box()
        request = RotateCredentials(overlap_seconds=overlap, end_sessions=end_sessions)
        async with change(Action.CREDENTIALS_ROTATE, ("database", record.uuid)):
            accepted = await service.rotate_any(box, record.uuid, request)
        async with row_watch().running() as watch:
            rotation = await await_rotation(watch, UUID(accepted.subject), _APPLIED_SECONDS)
        return rotation_view(await _record(str(record.uuid)), rotation, None)


@click.command("complete-rotation")
@_database
@shown
async def complete_rotation(database: str) -> RotationView:
    """End the overlap of a database's rotation now: the previous password is refused."""
    async with store():
        record = await _record(database)
        rotation = await rotations.find_under_way(record.id)
        if rotation is None:
            raise NotFound("rotation under way")
        async with change(Action.CREDENTIAL_ROTATION_COMPLETE, ("credential_rotation", rotation.uuid)):
            await service.complete_any(rotation.uuid)
        async with row_watch().running() as watch:
            return rotation_view(record, await await_completed(watch, rotation.uuid, _APPLIED_SECONDS), None)


@click.command("credentials")
@_database
@shown
async def list_credentials(database: str) -> list[CredentialView]:
    """Show every login of a database, with its open sessions."""
    async with store():
        record = await _record(database)
        latest = await rotations.list_of(record.id, after=None, limit=1)
        made = await users.list_of(record.id)
        return credential_views(record, latest[0] if latest else None, made, await _sessions(record))


@click.command("users")
@_database
@shown
async def list_users(database: str) -> list[DatabaseUserView]:
    """Show the users of a database."""
    async with store():
        record = await _record(database)
        sessions = await _sessions(record)
        return [user_view(record, user, sessions) for user in await users.list_of(record.id)]


@click.command("rotate-user")
@_database
@click.argument("name")
@click.option("--end-sessions", is_flag=True, help="End the user's open sessions too.")
@shown
async def rotate_user(database: str, name: str, end_sessions: bool) -> DatabaseUserView:
    """Replace the password of a user of a database: the previous one is refused. The new one is shown only this
    once."""
    async with store():
        record, box = await _record(database), await sealing_box()
        request = RotateDatabaseUser(end_sessions=end_sessions)
        async with change(Action.DATABASE_USER_ROTATE, ("database", record.uuid)):
            accepted = await service.rotate_user_of_any(box, record.uuid, name, request)
        _, user, rotation = map(UUID, accepted.subject.split("/"))
        async with row_watch().running() as watch:
            rotated = await await_rotated_user(watch, record.uuid, user, rotation, _APPLIED_SECONDS)
        return user_view(await _record(str(record.uuid)), rotated, await _sessions(record), box)


@click.command("remove-user")
@_database
@click.argument("name")
@shown
async def remove_user(database: str, name: str) -> list[DatabaseUserView]:
    """End a user's access and remove it; what it owns stays, as the database's. Shows those that are left."""
    async with store():
        record = await _record(database)
        async with change(Action.DATABASE_USER_DELETE, ("database", record.uuid)):
            accepted = await service.remove_user_of_any(record.uuid, name)
        user = UUID(accepted.subject.partition("/")[2])
        async with row_watch().running() as watch:
            await await_removed(watch, record.uuid, user, _APPLIED_SECONDS)
        return [user_view(record, left, None) for left in await users.list_of(record.id)]


async def _record(database: str) -> DatabaseRecord:
    record = await records.find(await inventory.resolve(database))
    if record is None or record.team_id is None:
        raise NotFound("database")
    return record


async def _sessions(record: DatabaseRecord) -> Sessions:
    box = secret_box()
    adapters = Adapters(box)
    try:
        return await open_sessions(adapters, box, record)
    finally:
        await adapters.close()


COMMANDS = (rotate, complete_rotation, list_credentials, list_users, rotate_user, remove_user)
