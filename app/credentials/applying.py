"""Bringing a database's credentials and users on its engine to what their rows say.

Every step may be repeated: one that died anywhere is taken again from its row. Call it under the database's lock, so
that nothing else changes the database's accounts or its access meanwhile.
"""

from collections.abc import Awaitable, Callable

from app.contracts.base import DatabaseStatus
from app.contracts.credentials import DatabaseUserStatus, RotationStatus
from app.core.secrets import SecretBox
from app.credentials import operation, rotations, users
from app.credentials.logins import new_login, previous_login
from app.credentials.rotations import RotationRecord
from app.credentials.users import DatabaseUserRecord, user_password_place
from app.databases import credentials, records
from app.databases.passwords import password_place, tenant_of
from app.databases.records import DatabaseRecord
from app.databases.views import append_event_for
from app.engines.base import EngineAdapter, EngineError, HostUnavailable, Login, Tenant, accepted_when_full
from app.outbox.event_types import EventType
from app.quotas.plans import Plans
from app.store.notify import announce
from app.store.session import transaction


class CredentialChanges:
    """The changes that are outstanding on one database. `adapter` is that of its host."""

    def __init__(self, plans: Plans, box: SecretBox, adapter: EngineAdapter, record: DatabaseRecord) -> None:
        self._plans = plans
        self._box = box
        self._adapter = adapter
        self._record = record

    async def apply(self) -> str:
        """Takes every step that is left, also those after one that the engine refused. Returns the state for display.
        Raises what the first refused step met: `EngineError`, at once where the host is away."""
        steps: list[Callable[[], Awaitable[None]]] = [self._advance_rotation]
        steps += [self._step_for(user) for user in await users.list_of(self._record.id)]
        refused: EngineError | None = None
        for step in steps:
            try:
                await step()
            except HostUnavailable:
                raise
            except EngineError as fault:
                refused = refused or fault
        if refused is not None:
            raise refused
        return await self._state()

    async def _state(self) -> str:
        rotation = await rotations.find_under_way(self._record.id)
        overlap = f"the previous password works until {rotation.retires_at}" if rotation is not None else "one password"
        return f"{overlap}, {len(await users.list_of(self._record.id))} users"

    async def _advance_rotation(self) -> None:
        while (rotation := await rotations.find_under_way(self._record.id)) is not None:
            match rotation.status:
                case RotationStatus.PENDING:
                    await self._introduce(rotation)
                case RotationStatus.CANCELLING:
                    await self._withdraw(rotation)
                case RotationStatus.RETIRING:
                    await self._retire(rotation)
                case _:
                    return

    async def _introduce(self, rotation: RotationRecord) -> None:
        """Makes the new credentials known, proves them by a login, and makes them the database's. Without access to the
        database nothing can be proven: then they are withdrawn."""
        new = new_login(rotation, self._box)
        if self._record.status is DatabaseStatus.ACTIVE:
            await self._adapter.add_credential(self._tenant, new)
            await self._prove(new)
            if await self._record_proven(rotation, new):
                return
        await rotations.begin_cancellation(rotation.id)

    async def _withdraw(self, rotation: RotationRecord) -> None:
        tenant, new = self._tenant, new_login(rotation, self._box)
        current = previous_login(rotation, self._box)
        # Nobody knew the new password. Where sessions can't be distinguished, all of them are the tenant's own.
        end_sessions = self._adapter.distinguishes_sessions
        await self._adapter.retire_credential(tenant, current, new, end_sessions=end_sessions)
        async with transaction():
            record = await records.find_for_update(self._record.uuid)
            assert record is not None, "rows of databases are kept while anything is left of them"
            await rotations.record_cancelled(rotation.id)
            await operation.note_cancelled(record.id, record.status)
            await announce(record.uuid)

    async def _retire(self, rotation: RotationRecord) -> None:
        tenant, new = self._tenant, new_login(rotation, self._box)
        old = previous_login(rotation, self._box)
        end_sessions = rotation.end_sessions or self._adapter.distinguishes_sessions
        await self._adapter.retire_credential(tenant, new, old, end_sessions=end_sessions)
        async with transaction():
            await rotations.complete(rotation.id)
            await announce(self._record.uuid)

    async def _record_proven(self, rotation: RotationRecord, new: Login) -> bool:
        """Makes the new credentials the database's. False, and nothing is changed, where the rotation was cancelled or
        the database was deleted meanwhile."""
        async with transaction():
            record = await records.find_for_update(self._record.uuid)
            if record is None or record.status is DatabaseStatus.DELETED:
                return False
            if not await rotations.begin_overlap(rotation.id):
                return False
            sealed = self._box.seal(new.password, password_place(record.uuid))
            await credentials.replace(record.id, new.name, sealed)
            await operation.note_proven(record.id)
            changed = await records.find(record.uuid)
            assert changed is not None, "it was locked a moment ago"
            await append_event_for(self._plans, EventType.DATABASE_CREDENTIALS_ROTATED, changed)
            await announce(record.uuid)
        self._record = changed
        return True

    def _step_for(self, user: DatabaseUserRecord) -> Callable[[], Awaitable[None]]:
        async def step() -> None:
            if user.status is DatabaseUserStatus.CREATING and not await self._make(user):
                await users.begin_removal(user.id)
                await self._remove(user)
            elif user.status is DatabaseUserStatus.ROTATING:
                await self._rotate(user)
            elif user.status is DatabaseUserStatus.REMOVING:
                await self._remove(user)

        return step

    async def _rotate(self, user: DatabaseUserRecord) -> None:
        """Gives a user its new password and proves it. Without access to the database nothing can be proven: then it
        keeps the previous one."""
        assert user.next_rotation is not None, "it is under way"
        active = self._record.status is DatabaseStatus.ACTIVE
        if active:
            new = user.next_login(self._box)
            await self._adapter.put_user(self._tenant, new, keep_rights=True)
            await self._prove(new)
            if user.next_ends_sessions:
                # Before anybody gets the new password: all that are open are of the previous one.
                await self._adapter.end_user_sessions(self._tenant, user.login_name)
        else:
            await self._adapter.put_user(self._tenant, user.login(self._box), keep_rights=True)
        async with transaction():
            if active:
                sealed = self._box.seal(new.password, user_password_place(user.uuid))
                ended = await users.record_rotated(user.id, user.next_rotation, sealed)
            else:
                ended = await users.record_withdrawn(user.id, user.next_rotation)
            await announce(self._record.uuid)
        if not ended:
            # It was to be removed meanwhile.
            await self._remove(user)

    async def _make(self, user: DatabaseUserRecord) -> bool:
        """Makes a user and proves its login. False where the user is not to be: it was removed meanwhile, or nobody may
        enter the database, so that nothing can be proven."""
        if self._record.status is not DatabaseStatus.ACTIVE:
            return False
        login = user.login(self._box)
        await self._adapter.put_user(self._tenant, login)
        await self._prove(login)
        async with transaction():
            made = await users.activate(user.id)
            await announce(self._record.uuid)
            return made

    async def _remove(self, user: DatabaseUserRecord) -> None:
        await self._adapter.remove_user(self._tenant, user.login_name)
        async with transaction():
            await users.delete_removed(user.id)
            await announce(self._record.uuid)

    async def _prove(self, login: Login) -> None:
        # Not noted as one of our own logins: by rotating again and again a tenant would hide its sessions behind them.
        with accepted_when_full():
            await self._adapter.log_in_as(self._tenant, login)

    @property
    def _tenant(self) -> Tenant:
        return tenant_of(self._record, self._box)
