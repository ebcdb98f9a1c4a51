"""One attempt, taken apart: what a crash at each point leaves behind, and what it never costs."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest
import pytest_asyncio

from app.contracts.webhooks import AttemptOutcome, AttemptRef, DeliveryStatus
from app.core.secrets import SecretBox
from app.core.settings import Settings
from app.egress.sender import Sender
from app.store.session import fetch, transaction
from app.webhooks import waiting
from app.webhooks.attempts import FIRST_AT_ONCE, Attempts, jittered
from app.webhooks.dispatch import Batch, dispatch
from app.webhooks.waiting import WaitingDelivery
from tests.support.client import Caller
from tests.support.in_process import LoneApi, lone_api
from tests.support.meeting import row_lock
from tests.support.receiver import Receiver, answer, hang
from tests.support.waiting import until
from tests.support.webhooks import ALLOWED, emit, subscribed
from workers.deliveries import WaitingDeliveries

PENDING, DELIVERED, FAILED = DeliveryStatus.PENDING, DeliveryStatus.DELIVERED, DeliveryStatus.FAILED
WORKER = UUID("00000000-0000-4000-8000-000000000001")
KEYS = "k1:" + "A" * 43 + "="


class Made:
    """Everything about one delivery, whose worker is this test."""

    def __init__(self, api: LoneApi, receiving: Receiver, sender: Sender, caller: Caller, endpoint: int) -> None:
        self.api, self.receiving, self.sender, self.caller, self.endpoint = api, receiving, sender, caller, endpoint
        self.delivery = 0

    def attempts(self, *, first_at_once: int = FIRST_AT_ONCE, **settings: Any) -> Attempts:
        """Another worker, with a gate of its own."""
        known = Settings(webhook_timeout_seconds=1.2, **settings)
        return Attempts(SecretBox.from_setting(KEYS), self.sender, known, first_at_once=first_at_once)

    async def emitted(self) -> int:
        await emit(self.caller)
        await dispatch(100, first_wait=0)
        rows = await fetch("SELECT max(id) AS id FROM webhook_deliveries WHERE endpoint_id = $1", self.endpoint)
        self.delivery = rows[0]["id"]
        return self.delivery

    async def first(self, worker: Attempts | None = None, *, round_: int = 0) -> AttemptOutcome:
        return await (worker or self.attempts()).make_first(AttemptRef(delivery=self.delivery, round=round_))

    async def next(self, spent: int, worker: Attempts | None = None, *, probing: bool = False) -> bool:
        """The attempt that follows `spent` others, of a delivery that waits, by a worker that claimed its endpoint."""
        await fetch("UPDATE webhook_endpoints SET claimed_by = $1, claimed_until = now() + interval '1 minute'", WORKER)
        waiting = WaitingDelivery(id=self.delivery, round=0, spent=spent)
        return await (worker or self.attempts()).make_next(waiting, worker=WORKER, probing=probing)

    async def wait(self) -> float:
        """Seconds from its last attempt to the next."""
        rows = await fetch(
            "SELECT extract(epoch FROM next_attempt_at - (SELECT max(created_at) FROM webhook_attempts"
            " WHERE delivery_id = d.id))::float8 AS wait FROM webhook_deliveries d WHERE id = $1",
            self.delivery,
        )
        return float(rows[0]["wait"])

    async def asked(self) -> bool:
        return bool(self.receiving.received)

    async def counted(self) -> bool:
        return bool((await self.row())["attempt_count"])

    async def row(self) -> Any:
        (row,) = await fetch("SELECT * FROM webhook_deliveries WHERE id = $1", self.delivery)
        return row


@pytest_asyncio.fixture
async def made(control_dsn: str, receiving: Receiver) -> AsyncIterator[Made]:
    known: dict[str, Any] = {
        "secret_keys": KEYS,
        "webhook_allow_cidrs": (ALLOWED,),
        "webhook_ca_file": receiving.ca_file,
        "webhook_timeout_seconds": 1.2,
    }
    async with lone_api(control_dsn, **known) as api:
        sender = Sender(Settings(**known))
        try:
            caller = await api.caller()
            endpoint, _ = await subscribed(caller, receiving.url("/hook"))
            one = Made(api, receiving, sender, caller, endpoint)
            await one.emitted()
            yield one
        finally:
            await sender.close()


async def test_a_worker_that_dies_between_request_and_record_sends_again(made: Made) -> None:
    worker = made.attempts()
    async with row_lock(made.api.control_dsn, "webhook_deliveries") as waiters:
        attempt = asyncio.create_task(made.first(worker))
        await until(waiters)
        await worker.close()
    with pytest.raises(asyncio.CancelledError):
        await attempt
    assert (await made.row())["attempt_count"] == 0
    assert (await made.first()).status is DELIVERED
    first, second = made.receiving.received
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert first.body == second.body


async def test_a_recorded_attempt_whose_answer_was_lost_is_not_made_again(made: Made) -> None:
    made.receiving.replies["/hook"] = answer(500)
    once = await made.first()
    again = await made.first()
    assert (once.status, once.spent) == (again.status, again.spent) == (PENDING, 1)
    assert 0 < again.wait_seconds <= once.wait_seconds
    assert len(made.receiving.received) == 1
    made.receiving.replies["/hook"] = answer(200)
    assert await made.next(1)
    assert await made.next(1)
    assert (await made.first()).status is DELIVERED
    assert len(made.receiving.received) == 2


async def test_the_waits_are_the_schedules_with_jitter(made: Made) -> None:
    made.receiving.replies["/hook"] = answer(500)
    schedule = (0.0, 5.0, 300.0, 1800.0)
    worker = made.attempts(webhook_retry_schedule=schedule)
    await made.first(worker)
    for spent, base in enumerate(schedule[1:], 1):
        row = await made.row()
        assert (row["status"], row["waiting"], row["spent"]) == ("pending", True, spent)
        assert 0.8 * base - 1 <= await made.wait() <= 1.2 * base + 1
        assert await made.next(spent, worker)
    row = await made.row()
    assert (row["status"], row["attempt_count"], row["next_attempt_at"]) == ("failed", 4, None)
    assert (row["waiting"], row["finished_at"] is None) == (False, False)


async def test_jitter_is_spread() -> None:
    waits = [jittered(100) for _ in range(1000)]
    assert 80 <= min(waits) < 85
    assert 115 < max(waits) <= 120


@pytest.mark.parametrize(("after", "least", "most"), [("1", 4, 6), ("60", 60, 60), ("999999", 86_400, 86_400)])
async def test_retry_after_lengthens_a_wait_and_never_shortens_one(
    made: Made, after: str, least: float, most: float
) -> None:
    made.receiving.replies["/hook"] = answer(429, Retry_After=after)
    outcome = await made.first()
    assert least <= outcome.wait_seconds <= most


async def test_revoked_while_it_is_sent(made: Made) -> None:
    made.receiving.replies["/hook"] = hang
    sending = asyncio.create_task(made.first())
    await until(made.asked)
    await made.caller.delete(f"/webhook_endpoints/{made.endpoint}")
    await sending
    await until(made.counted)
    row = await made.row()
    assert (row["status"], row["error_message"], row["attempt_count"]) == ("failed", "The endpoint is revoked.", 1)
    assert (await made.first()).status is FAILED
    assert await made.next(1)
    assert len(made.receiving.received) == 1


async def test_an_event_dispatched_while_its_endpoint_is_revoked(made: Made) -> None:
    await fetch("UPDATE webhook_endpoints SET revoked_at = now()")
    assert (await made.first()).status is FAILED
    assert made.receiving.received == []
    assert (await made.row())["error_message"] == "The endpoint is revoked."


async def test_a_delivery_that_was_asked_for_again_belongs_to_the_new_round(made: Made) -> None:
    await made.caller.request("POST", f"/webhook_endpoints/{made.endpoint}/deliveries/{made.delivery}/retries")
    superseded = await made.first()
    assert (superseded.status, made.receiving.received) == (FAILED, [])
    assert (await made.row())["status"] == "pending"
    assert (await made.first(round_=1)).status is DELIVERED


async def test_what_was_delivered_shows_the_answer_that_took_it(made: Made) -> None:
    made.receiving.replies["/hook"] = hang
    hanging = asyncio.create_task(made.first())
    await until(made.asked)
    made.receiving.replies["/hook"] = answer(202)
    await made.caller.request("POST", f"/webhook_endpoints/{made.endpoint}/deliveries/{made.delivery}/retries")
    assert (await made.first(round_=1)).status is DELIVERED
    await hanging

    async def both() -> bool:
        return bool((await made.row())["attempt_count"] == 2)

    await until(both)
    row = await made.row()
    assert (row["status"], row["response_code"], row["error_message"]) == ("delivered", 202, None)


async def test_no_more_than_so_many_at_once_for_one_endpoint(made: Made) -> None:
    """The others wait as rows, due at once, and none of that counts as an attempt."""
    made.receiving.replies["/hook"] = hang
    worker = made.attempts(webhook_concurrency=3)
    numbers = [made.delivery, *[await made.emitted() for _ in range(9)]]
    refs = [AttemptRef(delivery=number, round=0) for number in numbers]
    outcomes = await asyncio.gather(*map(worker.make_first, refs))
    assert len(made.receiving.received) == 3
    assert [one.status for one in outcomes if "turn" in one.words] == [PENDING] * 7
    assert worker.changed.is_set()
    rows = await fetch("SELECT 1 FROM webhook_deliveries WHERE waiting AND next_attempt_at <= now() AND spent = 0")
    assert len(rows) == 7
    assert await due() == [made.endpoint]


async def due() -> list[int]:
    rows = await fetch("SELECT id FROM webhook_endpoints WHERE next_attempt_at <= now()")
    return [row["id"] for row in rows]


async def test_a_burst_for_a_quick_receiver_goes_through(made: Made) -> None:
    """What finds no room within a moment waits for its turn, which comes at once."""
    worker = made.attempts(webhook_concurrency=2)
    numbers = [made.delivery, *[await made.emitted() for _ in range(9)]]
    serving = asyncio.create_task(WaitingDeliveries(worker, Settings(webhook_concurrency=2)).serve())
    await asyncio.gather(*(worker.make_first(AttemptRef(delivery=one, round=0)) for one in numbers))

    async def delivered() -> bool:
        return not await fetch("SELECT 1 FROM webhook_deliveries WHERE status <> 'delivered'")

    await until(delivered)
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)
    assert len(made.receiving.received) == 10


async def test_a_receiver_that_takes_its_time_holds_no_workflow(made: Made) -> None:
    """The attempt goes on and is recorded; should its process die, another is due later."""
    made.receiving.replies["/hook"] = hang
    outcome = await made.first()
    assert (outcome.status, outcome.spent) == (PENDING, 0)
    row = await made.row()
    assert (row["waiting"], row["attempt_count"]) == (True, 0)
    rows = await fetch("SELECT extract(epoch FROM next_attempt_at - now())::float8 AS wait FROM webhook_endpoints")
    assert rows[0]["wait"] > 10
    assert (await made.first()).status is PENDING
    await until(made.counted)
    row = await made.row()
    assert (row["waiting"], row["spent"], len(made.receiving.received)) == (True, 1, 1)
    assert 3 <= await made.wait() <= 7, "the schedule's, in place of the one for a process that died"


async def broken(made: Made, *, until: str = "now() + interval '1 minute'") -> None:
    await fetch(f"UPDATE webhook_endpoints SET slow_failures = 10, circuit_until = {until}")


async def state() -> tuple[int, bool]:
    (row,) = await fetch("SELECT slow_failures, circuit_until > now() AS open FROM webhook_endpoints")
    return row["slow_failures"], bool(row["open"])


async def test_attempts_that_hang_break_the_circuit(made: Made) -> None:
    made.receiving.replies["/hook"] = hang
    worker = made.attempts(webhook_concurrency=20)
    await fetch("UPDATE webhook_endpoints SET slow_failures = 8")
    assert await made.next(0, worker) is True, "it doesn't wait: nothing is to be done"
    await waiting.hold(made.delivery, made.endpoint, 0, 0)
    assert await made.next(0, worker)
    assert await state() == (9, False)
    await made.emitted()
    await waiting.hold(made.delivery, made.endpoint, 0, 0)
    assert await made.next(0, worker)
    assert await state() == (10, True)
    requests = len(made.receiving.received)
    await made.emitted()
    assert (await made.first(worker)).spent == 0
    assert not await made.next(0, worker)
    assert len(made.receiving.received) == requests
    # Half open: a probe.
    assert await made.next(0, worker, probing=True)
    assert len(made.receiving.received) == requests + 1
    assert await state() == (11, True)


async def test_an_answer_of_any_kind_mends_it(made: Made) -> None:
    for reply in (answer(500), answer(200)):
        made.receiving.replies["/hook"] = reply
        await fetch("DELETE FROM webhook_deliveries")
        await broken(made, until="now()")
        waits = await made.emitted()
        await made.emitted()
        assert await made.next(0, probing=True)
        assert await state() == (0, False)
        assert await due() == [made.endpoint], "what waits is due at once"
        (row,) = await fetch("SELECT waiting FROM webhook_deliveries WHERE id = $1", waits)
        assert row["waiting"]


async def test_a_ping_that_is_answered_mends_it(made: Made) -> None:
    await broken(made)
    await made.emitted()
    assert await due() == []
    await made.caller.post(f"/webhook_endpoints/{made.endpoint}/test_deliveries", {})
    assert await state() == (0, False)
    assert await due() == [made.endpoint]


async def test_quick_failures_leave_the_circuit_alone(made: Made) -> None:
    await fetch("UPDATE webhook_endpoints SET url = 'https://127.0.0.1:1/'")
    for _ in range(12):
        await made.emitted()
        assert (await made.first()).spent == 1
    assert await state() == (0, False)


async def test_a_probe_that_fails_quickly_mends_nothing(made: Made) -> None:
    """Else what waits would be let go to a receiver that is not there, one after the other."""
    await fetch("UPDATE webhook_endpoints SET url = 'https://127.0.0.1:1/'")
    await broken(made, until="now()")
    await made.emitted()
    assert await made.next(0, probing=True)
    assert await state() == (11, True)


async def test_what_has_waited_for_longer_than_the_schedule_ends(made: Made) -> None:
    """With the probe that shows that the receiver still hangs, and not before."""
    made.receiving.replies["/hook"] = hang
    await broken(made)
    worker = made.attempts(webhook_retry_schedule=(0.0, 5.0, 300.0))
    numbers = [await made.emitted() for _ in range(5)]
    await fetch("UPDATE webhook_deliveries SET round_started_at = now() - interval '2 hours' WHERE waiting")
    young = await made.emitted()
    made.delivery = numbers[0]
    assert not await made.next(0, worker)
    assert await made.next(0, worker, probing=True)
    rows = await fetch("SELECT id, status, attempt_count, waiting FROM webhook_deliveries WHERE id >= $1", numbers[0])
    states = {row["id"]: (row["status"], row["attempt_count"], row["waiting"]) for row in rows}
    assert states.pop(numbers[0]) == ("failed", 1, False)
    assert states.pop(young) == ("pending", 0, True)
    assert list(states.values()) == [("failed", 0, False)] * 4
    assert len(made.receiving.received) == 1


async def test_a_delivery_that_waited_for_another_reason_keeps_its_schedule(made: Made) -> None:
    """Such as for a worker that was away for days."""
    made.receiving.replies["/hook"] = answer(500)
    await fetch("UPDATE webhook_deliveries SET round_started_at = now() - interval '30 days'")
    outcome = await made.first()
    assert (outcome.status, outcome.spent) == (PENDING, 1)


async def test_first_attempts_only_where_nobody_is_kept_waiting(made: Made) -> None:
    await fetch("UPDATE webhook_endpoints SET slow_failures = 1")
    put_off = await made.first()
    assert (put_off.status, put_off.spent) == (PENDING, 0)
    assert made.receiving.received == []
    assert await made.next(0)
    assert (await made.row())["status"] == "delivered"
    await made.emitted()
    assert (await made.first()).status is DELIVERED


async def test_no_more_first_attempts_than_a_worker_can_spare(made: Made) -> None:
    made.receiving.replies["/hook"] = hang
    worker = made.attempts(first_at_once=2)
    numbers = [made.delivery, *[await made.emitted() for _ in range(3)]]
    await asyncio.gather(*(worker.make_first(AttemptRef(delivery=one, round=0)) for one in numbers))
    assert len(made.receiving.received) == 2


async def test_a_first_attempt_that_is_asked_for_again_is_under_way_once(made: Made) -> None:
    """As when our database was away for a moment, and Temporal heard of a failure while the request was under way."""
    made.receiving.replies["/hook"] = hang
    worker = made.attempts()
    outcomes = await asyncio.gather(made.first(worker), made.first(worker))
    assert [(one.status, one.spent) for one in outcomes] == [(PENDING, 0)] * 2
    await until(made.counted)
    assert (await made.row())["attempt_count"] == len(made.receiving.received) == 1


async def test_a_worker_without_the_claim_sends_nothing(made: Made) -> None:
    """One that was stopped for a while: another worker may have its endpoints by now."""
    await waiting.hold(made.delivery, made.endpoint, 0, 0)
    delivery = WaitingDelivery(id=made.delivery, round=0, spent=0)
    for holder, expired in ((UUID(int=2), "1 minute"), (WORKER, "-1 second")):
        await fetch(
            "UPDATE webhook_endpoints SET claimed_by = $1, claimed_until = now() + $2::text::interval", holder, expired
        )
        assert not await made.attempts().make_next(delivery, worker=WORKER, probing=False)
    assert made.receiving.received == []
    assert await made.next(0)
    assert len(made.receiving.received) == 1


async def test_an_event_for_an_endpoint_that_hangs_has_no_workflow(made: Made) -> None:
    await fetch("DELETE FROM workflow_starts")
    await broken(made)
    await emit(made.caller)
    batch = await dispatch(10, first_wait=0)
    assert (batch.events, batch.starts) == (1, [])
    assert await fetch("SELECT 1 FROM workflow_starts") == []
    (row,) = await fetch("SELECT next_attempt_at > now() AS later FROM webhook_endpoints")
    assert row["later"], "when it is probed"


async def test_a_summary_has_names_and_nothing_that_would_be_rendered(made: Made) -> None:
    await fetch("UPDATE teams SET name = '<b>[x](https://evil.example)' WHERE id = $1", made.caller.team_id)
    await fetch("DELETE FROM workflow_starts")
    await emit(made.caller)
    (start,) = (await dispatch(10, first_wait=0)).starts
    assert 'of team "?b??x??https???evil.example?"' in start.summary
    assert start.summary.endswith(f", {made.caller.team_id}")


async def test_a_first_wait_has_no_workflow(made: Made) -> None:
    await fetch("DELETE FROM webhook_deliveries")
    await emit(made.caller)
    assert (await dispatch(10, first_wait=600)).starts == []
    (row,) = await fetch(
        "SELECT waiting, extract(epoch FROM next_attempt_at - created_at)::float8 AS wait FROM webhook_deliveries"
    )
    assert row["waiting"]
    assert 470 <= row["wait"] <= 730


async def test_an_event_is_dispatched_once_however_many_do_so(made: Made) -> None:
    await fetch("DELETE FROM webhook_deliveries")
    await fetch("DELETE FROM workflow_starts")
    for _ in range(30):
        await emit(made.caller)
    batches: list[Batch] = await asyncio.gather(*(dispatch(10, first_wait=0) for _ in range(8)))
    while (batch := await dispatch(10, first_wait=0)).events:
        batches.append(batch)
    assert sum(batch.events for batch in batches) == sum(len(batch.starts) for batch in batches) == 30
    rows = await fetch(
        "SELECT (SELECT count(*) FROM webhook_deliveries) AS deliveries,"
        " (SELECT count(*) FROM workflow_starts WHERE workflow = 'DeliverWebhook') AS starts,"
        " (SELECT count(*) FROM events WHERE dispatched_at IS NULL) AS left"
    )
    assert dict(rows[0]) == {"deliveries": 30, "starts": 30, "left": 0}


async def test_an_event_whose_change_was_rolled_back_is_no_event(made: Made) -> None:
    before = len(await fetch("SELECT 1 FROM events"))

    class Undone(Exception):
        pass

    with pytest.raises(Undone):
        await roll_back(made, Undone)
    assert (await dispatch(10, first_wait=0)).events == 0
    assert len(await fetch("SELECT 1 FROM events")) == before


async def roll_back(made: Made, undone: type[Exception]) -> None:
    async with transaction():
        await emit(made.caller)
        raise undone
