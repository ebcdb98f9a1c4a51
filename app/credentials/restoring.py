"""Accounts of tenants, which must accept the recorded passwords.

No engine can keep an account from changing its own password. So the recorded one is restored, and an event reports it.
"""

from contextlib import suppress
from uuid import UUID

from msgspec.structs import replace

from app.contracts.base import DatabaseStatus
from app.contracts.credentials import DatabaseUserStatus
from app.core.secrets import SecretBox
from app.credentials import rotations, users
from app.credentials.logins import new_login, previous_login
from app.credentials.rotations import RotationRecord
from app.databases import credentials, records
from app.databases.passwords import tenant_of
from app.databases.records import DatabaseRecord
from app.engines.base import CredentialsRefused, EngineAdapter, Login, TenantFull
from app.quotas.plans import Plans
from app.store.locks import database_lock


async def restore(plans: Plans, box: SecretBox, adapter: EngineAdapter, database: UUID) -> bool:
    """Has the database's accounts take their recorded passwords again, and says whether one was put back; a call that
    finds the work of one that died finishes it. `adapter` is that of the database's host. Raises `EngineError`,
    `CredentialsRefused` where it didn't help, `LockBusy`, `LockLost`."""
    async with database_lock(database):
        record = await records.find(database)
        if (
            record is None
            or record.status is not DatabaseStatus.ACTIVE
            or record.access_applied < record.access_revision
        ):
            return False
        # These logins, of milliseconds, aren't recorded as ours: a tenant that causes them again and again would never
        # be seen at work.
        await _Accounts(box, adapter, record).restore()
        return await credentials.record_restored(plans, database)


class _Accounts:
    def __init__(self, box: SecretBox, adapter: EngineAdapter, record: DatabaseRecord) -> None:
        self._box = box
        self._adapter = adapter
        self._record = record
        self._tenant = tenant_of(record, box)

    async def restore(self) -> None:
        await self._restore_own(await rotations.find_overlapping(self._record.id))
        for user in await users.list_of(self._record.id):
            if user.status is DatabaseUserStatus.ACTIVE:
                await self._restore_user(user.login(self._box))

    async def _restore_own(self, rotation: RotationRecord | None) -> None:
        """Restores the database's credentials, and during an overlap those before them."""
        previous = previous_login(rotation, self._box) if rotation is not None else None
        if not await self._is_refused(None) and (previous is None or not await self._is_refused(previous)):
            return
        # Before the first statement, so that the event is written even after a crash.
        await credentials.record_refused(self._record.id)
        if rotation is None or previous is None:
            await self._adapter.restore_credentials(self._tenant)
        else:
            # Where both are of one account, putting back one of them would take the other away.
            earlier = replace(self._tenant, login=previous.name, password=previous.password)
            await self._adapter.restore_credentials(earlier)
            if self._adapter.rotation_renames:
                await self._adapter.restore_credentials(self._tenant)
            else:
                await self._adapter.add_credential(earlier, new_login(rotation, self._box))
        if await self._is_refused(None):
            raise CredentialsRefused(f"{self._record.engine_name} refuses the password that it was just given")

    async def _restore_user(self, login: Login) -> None:
        if await self._is_refused(login):
            await credentials.record_refused(self._record.id)
            await self._adapter.put_user(self._tenant, login, keep_rights=True)

    async def _is_refused(self, login: Login | None) -> bool:
        """Whether the engine refuses a login; None means the database's own credentials."""
        with suppress(TenantFull):  # and let in otherwise
            try:
                if login is None:
                    await self._adapter.log_in(self._tenant)
                else:
                    await self._adapter.log_in_as(self._tenant, login)
            except CredentialsRefused:
                return True
        return False
