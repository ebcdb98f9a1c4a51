"""What one worker claims, serves and lets go, whatever fails in between."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from uuid import UUID

import pytest
import pytest_asyncio

from app.core.ids import new_uuid
from app.core.secrets import SecretBox, new_key_setting
from app.core.settings import Settings
from app.store.session import fetch
from app.webhooks import waiting
from app.webhooks.attempts import Attempts
from app.webhooks.dispatch import dispatch
from app.webhooks.egress.sender import Sender
from app.webhooks.waiting import WaitingDelivery
from tests.support.client import Caller
from tests.support.in_process import lone_api
from tests.support.meeting import rows_held
from tests.support.receiver import Received, Receiver, answer
from tests.support.waiting import until
from tests.support.webhooks import ALLOWED, count, emit, path, subscribed
from workers.deliveries import Deliveries

Serving = Callable[[], AbstractAsyncContextManager[None]]
SELDOM = 0.001
"""Probes a second: one, and then none for as long as a test may take."""


@pytest_asyncio.fixture
async def known(receiving: Receiver) -> dict[str, object]:
    """Settings: attempts have longer than a test waits."""
    return {
        "secret_keys": new_key_setting(),
        "webhook_allow_cidrs": (ALLOWED,),
        "webhook_ca_file": receiving.ca_file,
        "webhook_timeout_seconds": 300,
        "webhook_probes_per_second": SELDOM,
    }


@pytest_asyncio.fixture
async def caller(control_dsn: str, known: dict[str, object]) -> AsyncIterator[Caller]:
    async with lone_api(control_dsn, **known) as api:
        yield await api.caller()


@pytest_asyncio.fixture
async def serving(known: dict[str, object], caller: Caller) -> AsyncIterator[Serving]:
    """A worker of this process, for a block."""
    settings = Settings(**known)  # type: ignore[arg-type]
    sender = Sender(settings)

    @asynccontextmanager
    async def serve() -> AsyncIterator[None]:
        attempts = Attempts(SecretBox.from_setting(settings.secret_keys or ""), sender, settings)
        task = asyncio.create_task(Deliveries(attempts, settings).serve())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    try:
        yield serve
    finally:
        await sender.close()


class Held:
    """A receiver's path whose answers wait until they are let go."""

    def __init__(self, receiving: Receiver, caller: Caller) -> None:
        self.receiving, self.caller, self.path, self.let_go = receiving, caller, path(), asyncio.Event()
        self.endpoint = 0
        receiving.replies[self.path] = self._reply

    async def _reply(self, _: Received, __: object) -> bytes:
        await self.let_go.wait()
        return b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

    async def subscribe(self) -> None:
        self.endpoint, _ = await subscribed(self.caller, self.receiving.url(self.path))

    async def asked(self) -> bool:
        return bool(self.receiving.of(self.path))

    async def delivered(self) -> bool:
        return not await fetch("SELECT 1 FROM webhook_deliveries WHERE endpoint_id = $1 AND waiting", self.endpoint)


async def wait_all() -> None:
    """The deliveries of every new event wait, due at once. What waited already is left alone: on a slow machine one of
    them is under way for so long that it has been put off."""
    await dispatch(100, first_wait=0)


async def wait_for_later(endpoint: int, number: int) -> None:
    """So many deliveries wait for the endpoint, and are due in an hour."""
    await fetch(
        "INSERT INTO webhook_deliveries (webhook_id, endpoint_id, event_type, payload, next_attempt_at, waiting)"
        " SELECT 'msg_' || n, $1::bigint, 'ping', '{}', now() + interval '1 hour', true"
        " FROM generate_series(1, $2::int) n",
        endpoint,
        number,
    )


async def test_a_revocation_leaves_the_rest_of_a_long_backlog_to_a_worker(
    serving: Serving, receiving: Receiver, caller: Caller
) -> None:
    """Else it would keep the endpoint's row locked for long, and with it the dispatch of other teams' events. It is so
    too where the receiver hangs, and where nothing is due."""
    held = Held(receiving, caller)
    held.let_go.set()
    await held.subscribe()
    await wait_for_later(held.endpoint, waiting.MOST_ENDED + 500)
    await fetch(
        "UPDATE webhook_endpoints SET slow_failures = 10, circuit_until = now() + interval '1 hour',"
        " next_attempt_at = now() + interval '1 hour'"
    )
    answered = await caller.delete(f"/webhook_endpoints/{held.endpoint}")
    assert answered.status_code == 200, answered.text
    assert await count(held.endpoint, "failed") == waiting.MOST_ENDED
    async with serving():
        await until(held.delivered)

        async def is_due_no_more() -> bool:
            return not await fetch("SELECT 1 FROM webhook_endpoints WHERE next_attempt_at IS NOT NULL")

        await until(is_due_no_more)
    assert receiving.of(held.path) == []
    (row,) = await fetch("SELECT DISTINCT status, error_message, finished_at IS NULL AS open FROM webhook_deliveries")
    assert tuple(row) == ("failed", "The endpoint is revoked.", False)


async def test_what_is_revoked_while_it_is_claimed_is_due_at_once(receiving: Receiver, caller: Caller) -> None:
    """And not when the first delivery that is left would have been."""
    held, worker = Held(receiving, caller), new_uuid()
    await held.subscribe()
    await wait_for_later(held.endpoint, waiting.MOST_ENDED + 1)
    await fetch("UPDATE webhook_endpoints SET next_attempt_at = now()")
    [before] = await waiting.claim(worker, 10, probes=0)
    answered = await caller.delete(f"/webhook_endpoints/{held.endpoint}")
    assert answered.status_code == 200, answered.text
    await waiting.release(worker, held.endpoint)
    [after] = await waiting.claim(worker, 10, probes=0)
    assert (before.revoked, after.revoked, after.id) == (False, True, held.endpoint)
    await waiting.end_revoked(held.endpoint)
    await waiting.release(worker, held.endpoint)
    assert await waiting.claim(worker, 10, probes=0) == []
    assert await count(held.endpoint, "pending") == 0


async def test_a_claim_that_expires_while_its_worker_sends(
    serving: Serving, receiving: Receiver, caller: Caller
) -> None:
    """It was stopped, or our database was away: the worker claims the endpoint again, and has it in hand already."""
    held, other = Held(receiving, caller), Held(receiving, caller)
    other.let_go.set()
    await held.subscribe()
    await emit(caller)
    await wait_all()
    async with serving():
        await until(held.asked)
        await fetch("UPDATE webhook_endpoints SET claimed_until = now() - interval '1 second'")

        async def claimed_again() -> bool:
            return bool(await fetch("SELECT 1 FROM webhook_endpoints WHERE claimed_until > now()"))

        await until(claimed_again)
        # What is claimed after that has been sent, so that would have been sent too.
        await other.subscribe()
        await emit(caller, 1)
        await wait_all()
        await until(other.asked)
        held.let_go.set()
        await until(held.delivered)
    arrived = [got.headers["webhook-id"] for got in receiving.of(held.path)]
    assert len(arrived) == len(set(arrived)) == 2


async def test_a_claim_whose_release_failed_expires_while_the_worker_is_busy(
    serving: Serving, receiving: Receiver, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else what waits for that endpoint would wait for as long as the worker has anything else to do."""
    monkeypatch.setattr(waiting, "CLAIM_SECONDS", 1.5)
    release, failed = waiting.release, asyncio.Event()
    busy, other = Held(receiving, caller), Held(receiving, caller)
    other.let_go.set()

    async def fail_once(worker: object, endpoint: int, *, pause: float = 0) -> bool | None:
        if endpoint == other.endpoint and not failed.is_set():
            failed.set()
            raise OSError("our database is away")
        return await release(worker, endpoint, pause=pause)  # type: ignore[arg-type]

    monkeypatch.setattr(waiting, "release", fail_once)
    await busy.subscribe()
    await other.subscribe()
    await fetch("UPDATE webhook_endpoints SET slow_failures = 10 WHERE id = $1", busy.endpoint)
    await emit(caller)
    await wait_all()
    async with serving():
        await until(busy.asked)
        await until(failed.wait)
        await emit(caller, 1)
        await wait_all()

        async def both() -> bool:
            return len(receiving.of(other.path)) == 2

        await until(both)
        assert len(receiving.of(busy.path)) == 1, "it is still busy with that"
        busy.let_go.set()


async def test_an_attempt_that_fails_here_breaks_off_no_other(
    serving: Serving, receiving: Receiver, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our database is away when it is to be put off, while another request to the same endpoint is under way."""
    held, failed = Held(receiving, caller), asyncio.Event()
    postpone = waiting.postpone

    async def fail_once(delivery: WaitingDelivery, seconds: float) -> None:
        if not failed.is_set():
            await until(held.asked)
            failed.set()
            raise OSError("our database is away")
        await postpone(delivery, seconds)

    monkeypatch.setattr(waiting, "postpone", fail_once)
    await held.subscribe()
    await emit(caller)
    await emit(caller, 1)
    await wait_all()
    await fetch("UPDATE webhook_deliveries SET payload = 'none' WHERE id = (SELECT min(id) FROM webhook_deliveries)")
    async with serving():
        await until(failed.wait)
        held.let_go.set()

        async def sent() -> bool:
            return bool(await fetch("SELECT 1 FROM webhook_deliveries WHERE status = 'delivered'"))

        await until(sent)
    assert len(receiving.of(held.path)) == 1


async def test_one_slow_answer_delays_no_other(serving: Serving, receiving: Receiver, caller: Caller) -> None:
    """The attempt goes on by itself, and is made again only if its process should die."""
    held = Held(receiving, caller)
    await held.subscribe()
    await emit(caller)
    await wait_all()
    async with serving():
        await until(held.asked)
        receiving.replies[held.path] = answer(200)
        for number in range(10):
            await emit(caller, number)
        await wait_all()

        async def others() -> bool:
            rows = await fetch("SELECT 1 FROM webhook_deliveries WHERE status = 'delivered'")
            return len(rows) == 10

        await until(others)
        (row,) = await fetch(
            "SELECT next_attempt_at - now() > interval '1 minute' AS later FROM webhook_deliveries WHERE waiting"
        )
        assert row["later"], "after all the time that an attempt may take"
        held.let_go.set()
        await until(held.delivered)
    assert len(receiving.of(held.path)) == 11


async def test_what_our_own_database_kept_for_long_is_due_at_once(
    serving: Serving, receiving: Receiver, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its endpoint was released meanwhile, so that it wasn't sent."""
    make, kept, goes_on = Attempts.make, asyncio.Event(), asyncio.Event()

    async def keep_once(self: Attempts, delivery: WaitingDelivery, *, worker: UUID, probing: bool) -> bool:
        if not kept.is_set():
            kept.set()
            await goes_on.wait()
        return await make(self, delivery, worker=worker, probing=probing)

    monkeypatch.setattr(Attempts, "make", keep_once)
    held = Held(receiving, caller)
    held.let_go.set()
    await held.subscribe()
    await emit(caller)
    await wait_all()
    async with serving():
        await until(kept.wait)

        async def released() -> bool:
            return not await fetch("SELECT 1 FROM webhook_endpoints WHERE claimed_by IS NOT NULL")

        await until(released)
        goes_on.set()
        await until(held.delivered)
    assert len(receiving.of(held.path)) == 1


async def test_slow_answers_leave_no_room(serving: Serving, receiving: Receiver, caller: Caller) -> None:
    """As many attempts as one endpoint may have; the others follow when there is room."""
    held = Held(receiving, caller)
    await held.subscribe()
    for number in range(12):
        await emit(caller, number)
    await wait_all()
    async with serving():

        async def full() -> bool:
            return len(receiving.of(held.path)) == Settings().webhook_concurrency

        await until(full)

        async def let_go() -> bool:
            return not await fetch("SELECT 1 FROM webhook_endpoints WHERE claimed_by IS NOT NULL")

        await until(let_go)
        assert await full()
        held.let_go.set()
        await until(held.delivered)
    assert len(receiving.of(held.path)) == 12


async def test_probes_that_hang_keep_a_pace_and_answered_ones_do_not(
    serving: Serving, receiving: Receiver, caller: Caller
) -> None:
    """More endpoints of a team hang than may be served at the same time; another one of it is well."""
    hanging = [Held(receiving, caller) for _ in range(9)]
    for one in hanging:
        await one.subscribe()
    await emit(caller)
    await wait_all()
    await fetch("UPDATE webhook_endpoints SET slow_failures = 10")
    well = Held(receiving, caller)
    well.let_go.set()
    await well.subscribe()
    async with serving():
        for number in range(2):
            await emit(caller, number)
            await dispatch(100, first_wait=0)

            async def asked(times: int = number + 1) -> bool:
                return len(receiving.of(well.path)) == times

            await until(asked)
        assert sum(len(receiving.of(one.path)) for one in hanging) == 1
        for one in hanging:
            one.let_go.set()
        for one in hanging:
            await until(one.asked)


async def test_probes_take_no_turn_of_the_same_teams_other_endpoints(receiving: Receiver, caller: Caller) -> None:
    hanging = [Held(receiving, caller) for _ in range(9)]
    for one in hanging:
        await one.subscribe()
    await fetch("UPDATE webhook_endpoints SET slow_failures = 10")
    well = Held(receiving, caller)
    await well.subscribe()
    await emit(caller)
    await wait_all()
    await fetch("UPDATE webhook_endpoints SET next_attempt_at = now() - interval '1 minute' WHERE slow_failures = 10")
    claimed = await waiting.claim(new_uuid(), 100, probes=2)
    assert sorted(one.broken for one in claimed) == [False, True, True]
    assert well.endpoint in {one.id for one in claimed}


async def test_a_locked_row_keeps_no_other_claim_from_being_renewed(
    control_dsn: str, receiving: Receiver, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "CLAIM_SECONDS", 3600)
    locked, other, worker = Held(receiving, caller), Held(receiving, caller), new_uuid()
    await locked.subscribe()
    await other.subscribe()
    await emit(caller)
    await wait_all()
    both = [one.id for one in await waiting.claim(worker, 10, probes=0)]
    assert sorted(both) == [locked.endpoint, other.endpoint]
    await fetch("UPDATE webhook_endpoints SET claimed_until = now() + interval '10 minutes'")
    renewed = "SELECT id FROM webhook_endpoints WHERE claimed_until > now() + interval '30 minutes' ORDER BY id"
    async with rows_held(control_dsn, f"webhook_endpoints WHERE id = {locked.endpoint}"):
        await waiting.renew(worker, both)
        assert [row["id"] for row in await fetch(renewed)] == [other.endpoint]
    await waiting.renew(worker, both)
    assert [row["id"] for row in await fetch(renewed)] == [locked.endpoint, other.endpoint]


async def test_probes_under_way_take_no_place_of_the_same_teams_other_endpoints(
    receiving: Receiver, caller: Caller
) -> None:
    for _ in range(9):
        await Held(receiving, caller).subscribe()
    await fetch("UPDATE webhook_endpoints SET slow_failures = 10")
    await emit(caller)
    await wait_all()
    probed = await waiting.claim(new_uuid(), 100, probes=100)
    assert [one.broken for one in probed] == [True] * 8
    well = Held(receiving, caller)
    await well.subscribe()
    await emit(caller)
    await wait_all()
    claimed = await waiting.claim(new_uuid(), 100, probes=100)
    assert [(one.id, one.broken) for one in claimed] == [(well.endpoint, False)]
