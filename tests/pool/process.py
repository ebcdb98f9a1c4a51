"""What one API process knows of the pool, for tests that decide when it reads ahead."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import UUID, uuid4

import msgspec

from app.auth.principal import Principal
from app.blueprints.large_scripts import LargeScripts
from app.core.clock import utc_now
from app.core.secrets import SecretBox
from app.databases.pool.claim import ReadyMembers
from app.databases.schemas import CreateDatabase
from app.provisioning.creation import CreatedDatabase, DatabaseCreation
from app.quotas.plans import DEFAULT_PLANS
from app.store.notify import RowWatch
from app.store.session import Statement
from app.web.envelope import encode
from app.web.idempotency import Answer
from app.web.idempotency_rows import KeyClaim, KeyRows


@dataclass(frozen=True)
class Process:
    box: SecretBox
    principal: Principal
    members: ReadyMembers

    async def create(self, *, region: str | None = None, key: str | None = None) -> CreatedDatabase | None:
        """The immediate way alone: None where it does nothing."""
        rows = KeyRows(self.box, ttl=60, lease=10)
        claim = KeyClaim(user_id=self.principal.user_id, key=key or str(uuid4()), fingerprint=b"", owner=uuid4())

        def store_answer(subject: str, answer: Answer) -> tuple[Statement, ...]:
            return (rows.insertion(claim, subject, None, answer.status, encode(answer.body)),)

        principal = msgspec.structs.replace(self.principal, admitted_at=utc_now())
        request = CreateDatabase(name="a", region=region or msgspec.UNSET)
        creation = DatabaseCreation(
            principal,
            request,
            plans=DEFAULT_PLANS,
            box=self.box,
            members=self.members,
            watch=RowWatch("nothing is waited for"),
            scripts=LargeScripts(),
        )
        answer = await creation.immediate(store_answer)
        if answer is None:
            return None
        assert isinstance(answer.body, CreatedDatabase)
        return answer.body

    async def made(self, **create: str) -> UUID:
        """The database that was made at once."""
        body = await self.create(**create)
        assert body is not None
        return body.data.uuid

    async def prefetch(self) -> None:
        """What follows a claim, now."""
        await self.members.prefetch_now()

    def known(self) -> list[UUID]:
        """The members that were read for the next creates."""
        return [one.member.uuid for one in self.members._prefetched.values()]


@asynccontextmanager
async def process(box: SecretBox, principal: Principal, *, lifetime_seconds: float = 3600) -> AsyncIterator[Process]:
    """It reads ahead when the test says so, and the oldest member is the next."""
    members = ReadyMembers(prefetch_seconds=3600, lifetime_seconds=lifetime_seconds, choice=1)
    try:
        yield Process(box, principal, members)
    finally:
        await members.close()
