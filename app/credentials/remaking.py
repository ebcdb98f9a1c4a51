"""A database with all its accounts, made again where nothing of it is left."""

from msgspec.structs import replace

from app.contracts.credentials import DatabaseUserStatus
from app.core.ids import engine_password
from app.core.secrets import SecretBox
from app.credentials import rotations, users
from app.credentials.logins import new_login, previous_login, primary_login
from app.databases.on_engine import limits_of
from app.databases.passwords import tenant_of
from app.databases.records import DatabaseRecord
from app.engines.base import EngineAdapter, Login, Tenant


async def make_again(box: SecretBox, adapter: EngineAdapter, record: DatabaseRecord) -> None:
    """Makes the database, closed, with the recorded name, user names and passwords; during an overlap with both
    credentials. May be repeated. Call it under the database's lock. Raises `EngineError`."""
    tenant = tenant_of(record, box)
    rotation = await rotations.find_overlapping(record.id)
    previous = previous_login(rotation, box) if rotation is not None else None
    own = primary_login(tenant.login, tenant.password)
    if adapter.rotation_renames:
        await _make_logins(adapter, record, tenant, [own, previous] if previous else [own])
    elif rotation is not None and previous is not None:
        # Both passwords are of one account.
        earlier = replace(tenant, login=previous.name, password=previous.password)
        await adapter.create(earlier, limits_of(record))
        await adapter.revoke_access(earlier)
        await adapter.add_credential(earlier, new_login(rotation, box))
    else:
        await adapter.create(tenant, limits_of(record))
    await adapter.revoke_access(tenant)


async def put_users(box: SecretBox, adapter: EngineAdapter, record: DatabaseRecord) -> None:
    """Makes the database's users, with their rights on what is in it now. May be repeated. Call it under the database's
    lock, while the database is closed: its users are opened with it. Raises `EngineError`."""
    tenant = tenant_of(record, box)
    for user in await users.list_of(record.id):
        # A user that is getting a new password has the one before until the new one is proven.
        if user.status in (DatabaseUserStatus.ACTIVE, DatabaseUserStatus.ROTATING):
            await adapter.put_user(tenant, user.login(box))


async def _make_logins(adapter: EngineAdapter, record: DatabaseRecord, tenant: Tenant, logins: list[Login]) -> None:
    """Makes the owner, and its logins where they are roles of their own."""
    first = next((one for one in logins if one.name == tenant.name), None)
    owner = replace(tenant, login="", password=first.password if first is not None else engine_password())
    await adapter.create(owner, limits_of(record))
    await adapter.revoke_access(owner)
    for one in logins:
        if one.name != tenant.name:
            await adapter.add_credential(owner, one)
    if first is None:
        await adapter.retire_credential(
            tenant, logins[0], primary_login(tenant.name, owner.password), end_sessions=True
        )
