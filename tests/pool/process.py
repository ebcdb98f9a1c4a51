"""What one API process knows of the pool, for tests that decide when it looks ahead."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import UUID, uuid4

import msgspec

from app.auth.principal import Principal
from app.core.clock import utc_now
from app.core.secrets import SecretBox
from app.databases.records import DatabaseRecord
from app.databases.schemas import CreateDatabase
from app.outbox.events import Notices
from app.pool.ready import ReadyMembers
from app.provisioning.instant import create_at_once
from app.web.envelope import encode
from app.web.idempotency import Answer, Kept


@dataclass(frozen=True)
class Process:
    box: SecretBox
    principal: Principal
    members: ReadyMembers[DatabaseRecord]
    notices: Notices

    async def create(self, *, region: str | None = None, key: str | None = None) -> Kept | None:
        def keeping(subject: str, answer: Answer) -> Kept:
            return Kept(
                user_id=self.principal.user_id,
                key=key or str(uuid4()),
                fingerprint=b"",
                resource=subject,
                response_status=answer.status,
                response_sealed=b"",
                ttl=60,
                body=encode(answer.body),
            )

        principal = msgspec.structs.replace(self.principal, admitted_at=utc_now())
        request = CreateDatabase(name="a", region=region or msgspec.UNSET)
        return await create_at_once(self.box, self.members, self.notices, principal, request, keeping)

    async def made(self, **create: str) -> UUID:
        """The database that was made at once."""
        kept = await self.create(**create)
        assert kept is not None
        return UUID(kept.resource)

    async def look_ahead(self) -> None:
        """What follows a claim, now."""
        await self.members._look_ahead()

    def known(self) -> list[UUID]:
        """The members that were looked at for the next creates."""
        return [kept.found.row.uuid for kept in self.members._kept.values()]


@asynccontextmanager
async def process(box: SecretBox, principal: Principal) -> AsyncIterator[Process]:
    members, notices = ReadyMembers(DatabaseRecord), Notices()
    try:
        yield Process(box, principal, members, notices)
    finally:
        await members.close()
        await notices.close()
