"""One attempt, taken apart: what a crash at each point leaves behind, and what it never costs."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio

from app.contracts.webhooks import AttemptOutcome, AttemptRef, DeliveryStatus
from app.core.secrets import SecretBox
from app.core.settings import Settings
from app.egress.sender import Sender
from app.store.session import fetch, transaction
from app.webhooks import attempts as attempts_module
from app.webhooks.attempts import Attempts
from app.webhooks.dispatch import Batch, dispatch
from tests.support.client import Caller
from tests.support.in_process import LoneApi, lone_api
from tests.support.receiver import Receiver, answer, hang
from tests.support.webhooks import ALLOWED, emit, subscribed

PENDING, DELIVERED, FAILED = DeliveryStatus.PENDING, DeliveryStatus.DELIVERED, DeliveryStatus.FAILED
KEYS = "k1:" + "A" * 43 + "="


class Made:
    """Everything about one delivery, whose worker is this test."""

    def __init__(self, api: LoneApi, receiving: Receiver, sender: Sender, caller: Caller, endpoint: int) -> None:
        self.api, self.receiving, self.sender, self.caller, self.endpoint = api, receiving, sender, caller, endpoint
        self.delivery = 0

    def attempts(self, **settings: Any) -> Attempts:
        """Another worker, with a gate of its own."""
        return Attempts(SecretBox.from_setting(KEYS), self.sender, Settings(**settings))

    async def emitted(self) -> int:
        await emit(self.caller)
        await dispatch(100, first_wait=0)
        rows = await fetch("SELECT max(id) AS id FROM webhook_deliveries WHERE endpoint_id = $1", self.endpoint)
        self.delivery = rows[0]["id"]
        return self.delivery

    def ref(self, spent: int = 0, **fields: Any) -> AttemptRef:
        return AttemptRef(delivery=self.delivery, round=fields.pop("round", 0), spent=spent, **fields)

    async def row(self) -> Any:
        (row,) = await fetch("SELECT * FROM webhook_deliveries WHERE id = $1", self.delivery)
        return row


@pytest_asyncio.fixture
async def made(control_dsn: str, receiving: Receiver) -> AsyncIterator[Made]:
    known: dict[str, Any] = {
        "secret_keys": KEYS,
        "webhook_allow_cidrs": (ALLOWED,),
        "webhook_ca_file": receiving.ca_file,
        "webhook_timeout_seconds": 1.0,
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


async def test_a_worker_that_dies_between_request_and_record_sends_again(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def die(*_: object) -> AttemptOutcome:
        raise SystemError("killed")

    with monkeypatch.context() as patched:
        patched.setattr(Attempts, "_record", die)
        with pytest.raises(SystemError):
            await made.attempts().make(made.ref())
    assert (await made.row())["attempt_count"] == 0
    assert (await made.attempts().make(made.ref())).status is DELIVERED
    first, second = made.receiving.received
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert first.body == second.body


async def test_a_recorded_attempt_whose_answer_was_lost_is_not_made_again(made: Made) -> None:
    made.receiving.replies["/hook"] = answer(500)
    once = await made.attempts().make(made.ref())
    again = await made.attempts().make(made.ref())
    assert (once.status, once.spent) == (again.status, again.spent) == (PENDING, 1)
    assert 0 < again.wait_seconds <= once.wait_seconds
    assert len(made.receiving.received) == 1
    made.receiving.replies["/hook"] = answer(200)
    assert (await made.attempts().make(made.ref(1))).status is DELIVERED
    assert (await made.attempts().make(made.ref(1))).status is DELIVERED
    assert len(made.receiving.received) == 2


async def test_the_waits_are_the_schedules_with_jitter(made: Made) -> None:
    made.receiving.replies["/hook"] = answer(500)
    schedule = (0.0, 5.0, 300.0, 1800.0)
    for spent, base in enumerate(schedule[1:]):
        outcome = await made.attempts(webhook_retry_schedule=schedule).make(made.ref(spent))
        assert outcome.status is PENDING
        assert 0.8 * base <= outcome.wait_seconds <= 1.2 * base
    last = await made.attempts(webhook_retry_schedule=schedule).make(made.ref(3))
    assert (last.status, last.spent, last.wait_seconds) == (FAILED, 4, 0)
    row = await made.row()
    assert (row["status"], row["attempt_count"], row["next_attempt_at"]) == ("failed", 4, None)
    assert row["finished_at"]


async def test_jitter_is_spread() -> None:
    waits = [attempts_module.jittered(100) for _ in range(1000)]
    assert 80 <= min(waits) < 85
    assert 115 < max(waits) <= 120


@pytest.mark.parametrize(("after", "least", "most"), [("1", 4, 6), ("60", 60, 60), ("999999", 86_400, 86_400)])
async def test_retry_after_lengthens_a_wait_and_never_shortens_one(
    made: Made, after: str, least: float, most: float
) -> None:
    made.receiving.replies["/hook"] = answer(429, Retry_After=after)
    outcome = await made.attempts().make(made.ref())
    assert least <= outcome.wait_seconds <= most


async def test_revoked_while_it_is_sent(made: Made) -> None:
    made.receiving.replies["/hook"] = hang
    sending = asyncio.create_task(made.attempts().make(made.ref()))
    await asyncio.sleep(0.3)
    await made.caller.delete(f"/webhook_endpoints/{made.endpoint}")
    assert (await sending).status is FAILED
    row = await made.row()
    assert (row["status"], row["error_message"], row["attempt_count"]) == ("failed", "The endpoint is revoked.", 1)
    assert (await made.attempts().make(made.ref(1))).status is FAILED
    assert len(made.receiving.received) == 1


async def test_an_event_dispatched_while_its_endpoint_is_revoked(made: Made) -> None:
    await fetch("UPDATE webhook_endpoints SET revoked_at = now()")
    assert (await made.attempts().make(made.ref())).status is FAILED
    assert made.receiving.received == []
    assert (await made.row())["error_message"] == "The endpoint is revoked."


async def test_a_delivery_that_was_asked_for_again_belongs_to_the_new_round(made: Made) -> None:
    await made.caller.request("POST", f"/webhook_endpoints/{made.endpoint}/deliveries/{made.delivery}/retries")
    superseded = await made.attempts().make(made.ref())
    assert (superseded.status, made.receiving.received) == (FAILED, [])
    assert (await made.row())["status"] == "pending"
    assert (await made.attempts().make(made.ref(round=1))).status is DELIVERED


async def test_what_was_delivered_shows_the_answer_that_took_it(made: Made) -> None:
    made.receiving.replies["/hook"] = hang
    hanging = asyncio.create_task(made.attempts().make(made.ref()))
    await asyncio.sleep(0.3)
    made.receiving.replies["/hook"] = answer(202)
    await made.caller.request("POST", f"/webhook_endpoints/{made.endpoint}/deliveries/{made.delivery}/retries")
    assert (await made.attempts().make(made.ref(round=1))).status is DELIVERED
    await hanging
    row = await made.row()
    assert (row["status"], row["response_code"], row["error_message"]) == ("delivered", 202, None)
    assert row["attempt_count"] == 2


async def test_no_more_than_so_many_at_once_for_one_endpoint(made: Made) -> None:
    """The others are put off, each to another time, and none of that counts as an attempt."""
    made.receiving.replies["/hook"] = hang
    worker = made.attempts(webhook_concurrency=3)
    numbers = [made.delivery, *[await made.emitted() for _ in range(9)]]
    refs = [AttemptRef(delivery=number, round=0, spent=0) for number in numbers]
    outcomes = await asyncio.gather(*map(worker.make, refs))
    postponed = [one for one in outcomes if one.spent == 0]
    assert len(made.receiving.received) == 3
    assert len(postponed) == 7
    assert all(one.status is PENDING and one.wait_seconds >= 1 for one in postponed)
    rows = await fetch("SELECT attempt_count, next_attempt_at FROM webhook_deliveries ORDER BY 1, 2")
    assert [row["attempt_count"] for row in rows] == [0] * 7 + [1] * 3
    # Seven, a tenth of a second apart.
    assert rows[6]["next_attempt_at"] - rows[0]["next_attempt_at"] > timedelta(seconds=0.3)


async def test_a_burst_for_a_quick_receiver_goes_through(made: Made) -> None:
    worker = made.attempts(webhook_concurrency=2)
    numbers = [made.delivery, *[await made.emitted() for _ in range(9)]]
    outcomes = await asyncio.gather(*(worker.make(AttemptRef(delivery=number, round=0, spent=0)) for number in numbers))
    assert {one.status for one in outcomes} == {DELIVERED}


async def broken(made: Made, *, until: str = "now() + interval '1 minute'") -> None:
    await fetch(f"UPDATE webhook_endpoints SET slow_failures = 10, circuit_until = {until}")


async def state() -> tuple[int, bool]:
    (row,) = await fetch("SELECT slow_failures, circuit_until > now() AS open FROM webhook_endpoints")
    return row["slow_failures"], bool(row["open"])


async def test_attempts_that_hang_break_the_circuit(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.webhooks.circuit.SLOW_SECONDS", 0.5)
    made.receiving.replies["/hook"] = hang
    worker = made.attempts(webhook_concurrency=20)
    numbers = [made.delivery, *[await made.emitted() for _ in range(11)]]
    refs = [AttemptRef(delivery=number, round=0, spent=0) for number in numbers]
    await asyncio.gather(*map(worker.make, refs[:9]))
    assert await state() == (9, False)
    await worker.make(refs[9])
    assert await state() == (10, True)
    put_off = await worker.make(refs[10])
    assert (put_off.status, put_off.spent, len(made.receiving.received)) == (PENDING, 0, 10)
    assert put_off.wait_seconds >= 5
    # Half open: one probe, and no more than one.
    await broken(made, until="now()")
    results = await asyncio.gather(worker.make(refs[10]), worker.make(refs[11]))
    assert sorted(one.spent for one in results) == [0, 1]
    assert len(made.receiving.received) == 11
    assert await state() == (11, True)


async def test_an_answer_of_any_kind_mends_it(made: Made) -> None:
    for reply in (answer(500), answer(200)):
        made.receiving.replies["/hook"] = reply
        await broken(made, until="now()")
        await made.emitted()
        await made.attempts().make(made.ref())
        assert await state() == (0, False)


async def test_quick_failures_leave_the_circuit_alone(made: Made) -> None:
    await fetch("UPDATE webhook_endpoints SET url = 'https://127.0.0.1:1/'")
    for _ in range(12):
        await made.emitted()
        assert (await made.attempts().make(made.ref())).spent == 1
    assert await state() == (0, False)


async def test_a_broken_circuit_doesnt_keep_a_delivery_for_ever(made: Made) -> None:
    made.receiving.replies["/hook"] = hang
    await broken(made)
    worker = made.attempts(webhook_retry_schedule=(0.0, 5.0, 300.0))
    assert (await worker.make(made.ref())).spent == 0
    await fetch("UPDATE webhook_deliveries SET round_started_at = now() - interval '2 hours'")
    last = await worker.make(made.ref())
    assert (last.status, last.spent, len(made.receiving.received)) == (FAILED, 1, 1)


async def test_a_delivery_that_waited_for_another_reason_keeps_its_schedule(made: Made) -> None:
    """Such as for a worker that was away for days."""
    made.receiving.replies["/hook"] = answer(500)
    await fetch("UPDATE webhook_deliveries SET round_started_at = now() - interval '30 days'")
    outcome = await made.attempts().make(made.ref())
    assert (outcome.status, outcome.spent) == (PENDING, 1)


async def test_at_hand_only_where_nobody_is_kept_waiting(made: Made) -> None:
    await fetch("UPDATE webhook_endpoints SET slow_failures = 1")
    put_off = await made.attempts().make(made.ref(at_hand=True))
    assert (put_off.status, put_off.spent, put_off.wait_seconds) == (PENDING, 0, 0)
    assert made.receiving.received == []
    assert (await made.attempts().make(made.ref())).status is DELIVERED
    await made.emitted()
    assert (await made.attempts().make(made.ref(at_hand=True))).status is DELIVERED


async def test_at_hand_no_more_than_a_worker_can_spare(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts_module, "_MOST_AT_HAND", 2)
    made.receiving.replies["/hook"] = hang
    worker = made.attempts()
    numbers = [made.delivery, *[await made.emitted() for _ in range(3)]]
    refs = [AttemptRef(delivery=number, round=0, spent=0, at_hand=True) for number in numbers]
    outcomes = await asyncio.gather(*map(worker.make, refs))
    assert sorted(one.spent for one in outcomes) == [0, 0, 1, 1]
    assert all(one.wait_seconds == 0 for one in outcomes if one.spent == 0)
    assert len(made.receiving.received) == 2


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
