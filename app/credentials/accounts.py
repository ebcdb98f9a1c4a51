"""Which accounts a database should have on its host, by its rows, and which it has."""

from collections.abc import Set as AbstractSet
from uuid import UUID

import msgspec

from app.contracts.base import DatabaseStatus
from app.contracts.credentials import DatabaseUserStatus
from app.core.ids import marker
from app.core.secrets import SecretBox
from app.credentials import rotations, users
from app.credentials.logins import primary_login
from app.databases import records
from app.databases.passwords import tenant_of
from app.databases.records import DatabaseRecord
from app.engines.base import EngineAdapter, Tenant
from app.engines.naming import HELPER_SEPARATOR, LOGIN_PURPOSE, USER_PURPOSE
from app.store.locks import database_lock


class AccountFaults(msgspec.Struct, frozen=True, kw_only=True):
    """How the accounts of one database differ from its rows."""

    unknown: tuple[str, ...]
    """Accounts that are on the host, and in no row."""
    missing: tuple[str, ...]
    """Accounts of users that are not on the host."""

    def __bool__(self) -> bool:
        return bool(self.unknown or self.missing)


async def find_faults(adapter: EngineAdapter, database: UUID) -> AccountFaults:
    """Compares accounts and rows once and, where they differ, once more while nothing else changes the database.
    `adapter` is that of its host. Raises `EngineError`, `LockBusy`, `LockLost`."""
    if not await _compare(adapter, database):
        return _NONE
    async with database_lock(database):
        return await _compare(adapter, database)


async def repair(box: SecretBox, adapter: EngineAdapter, database: UUID) -> AccountFaults:
    """Removes accounts that no row names, and makes those of users anew. Returns what there was to do. Raises as
    `find_faults` does."""
    async with database_lock(database):
        faults = await _compare(adapter, database)
        record = await records.find(database)
        if record is None or not faults:
            return faults
        tenant = tenant_of(record, box)
        for account in faults.unknown:
            if is_user_login(account):
                await adapter.remove_user(tenant, account)
            else:
                own = primary_login(record.login, tenant.password)
                await adapter.retire_credential(tenant, own, primary_login(account, ""), end_sessions=True)
        for user in await users.list_of(record.id):
            if user.login_name in faults.missing:
                await adapter.put_user(tenant, user.login(box))
        return faults


_NONE = AccountFaults(unknown=(), missing=())


async def _compare(adapter: EngineAdapter, database: UUID) -> AccountFaults:
    record = await records.find(database)
    if record is None or record.status is not DatabaseStatus.ACTIVE:
        return _NONE
    # The host first: an account is made after its row is written, and its row goes after the account.
    found = (await adapter.open_sessions(_without_password(record))).keys()
    known, wanted = await _recorded(record)
    return AccountFaults(unknown=tuple(sorted(found - known)), missing=tuple(sorted(wanted - found)))


async def _recorded(record: DatabaseRecord) -> tuple[AbstractSet[str], AbstractSet[str]]:
    """The accounts that its rows name, and those that have to be there."""
    made = await users.list_of(record.id)
    rotation = await rotations.find_under_way(record.id)
    known = {record.engine_name, record.login, *(user.login_name for user in made)}
    if rotation is not None:
        known |= {rotation.login_name, rotation.previous_login}
    return known, {user.login_name for user in made if user.status is DatabaseUserStatus.ACTIVE}


def _without_password(record: DatabaseRecord) -> Tenant:
    return Tenant(name=record.engine_name, password="", marker=marker(record.uuid))


def rotated_login(engine_name: str, revision: int) -> str:
    """The account that a rotation makes, on engines on which it makes one."""
    return f"{engine_name}{HELPER_SEPARATOR}{LOGIN_PURPOSE}{revision}"


def user_login(engine_name: str, revision: int) -> str:
    """The account of a user."""
    return f"{engine_name}{HELPER_SEPARATOR}{USER_PURPOSE}{revision}"


def is_user_login(account: str) -> bool:
    """Whether an account that is not the database's first is, or was, a user's."""
    return account.partition(HELPER_SEPARATOR)[2].startswith(USER_PURPOSE)
