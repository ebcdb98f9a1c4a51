"""One attempt, taken apart: what a crash at each point leaves behind, and what it never costs."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
import pytest_asyncio

from app.core.secrets import SecretBox
from app.core.settings import Settings
from app.store.session import fetch, transaction
from app.webhooks import waiting
from app.webhooks.attempts import Attempts, jittered
from app.webhooks.dispatch import dispatch
from app.webhooks.egress.sender import Sender
from app.webhooks.waiting import WaitingDelivery
from tests.support.answers import data_of
from tests.support.client import Caller
from tests.support.in_process import LoneApi, lone_api
from tests.support.meeting import row_lock, rows_held, waiters
from tests.support.receiver import Receiver, answer, hang, held
from tests.support.waiting import LIMIT_SECONDS, until
from tests.support.webhooks import ALLOWED, count, emit, subscribed
from workers.deliveries import Deliveries

WORKER = UUID("00000000-0000-4000-8000-000000000001")
KEYS = "k1:" + "A" * 43 + "="
hasty = pytest.mark.parametrize("made", [1.2], indirect=True)
"""Attempts have so many seconds: for receivers that hang. The others answer in time, however slow this machine is."""


class Made:
    """Everything about one delivery, whose worker is this test."""

    def __init__(
        self, api: LoneApi, receiving: Receiver, sender: Sender, caller: Caller, endpoint: int, seconds: float
    ) -> None:
        self.api, self.receiving, self.sender, self.caller, self.endpoint = api, receiving, sender, caller, endpoint
        self.seconds = seconds
        self.delivery = 0

    def attempts(self, **settings: Any) -> Attempts:
        """Another worker, with a gate of its own."""
        known = Settings(webhook_timeout_seconds=self.seconds, **settings)
        return Attempts(SecretBox.from_setting(KEYS), self.sender, known)

    async def emitted(self) -> int:
        await emit(self.caller)
        await dispatch(100, first_wait=0)
        rows = await fetch("SELECT max(id) AS id FROM webhook_deliveries WHERE endpoint_id = $1", self.endpoint)
        self.delivery = rows[0]["id"]
        return self.delivery

    async def make(
        self, spent: int = 0, worker: Attempts | None = None, *, probing: bool = False, round_: int = 0
    ) -> bool:
        """The attempt that follows `spent` others, by a worker that claimed the endpoint."""
        await fetch("UPDATE webhook_endpoints SET claimed_by = $1, claimed_until = now() + interval '1 minute'", WORKER)
        due = WaitingDelivery(id=self.delivery, round=round_, spent=spent)
        return await (worker or self.attempts()).make(due, worker=WORKER, probing=probing)

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
async def made(control_dsn: str, receiving: Receiver, request: pytest.FixtureRequest) -> AsyncIterator[Made]:
    seconds: float = getattr(request, "param", LIMIT_SECONDS)
    known: dict[str, Any] = {
        "secret_keys": KEYS,
        "webhook_allow_cidrs": (ALLOWED,),
        "webhook_ca_file": receiving.ca_file,
        "webhook_timeout_seconds": seconds,
    }
    async with lone_api(control_dsn, **known) as api:
        sender = Sender(Settings(**known))
        try:
            caller = await api.caller()
            endpoint, _ = await subscribed(caller, receiving.url("/hook"))
            one = Made(api, receiving, sender, caller, endpoint, seconds)
            await one.emitted()
            yield one
        finally:
            await sender.close()


async def test_an_ended_team_gets_its_last_events(made: Made) -> None:
    """Nobody is in it any more, and what became of its databases is still told."""
    assert await made.make()
    answered = await made.caller.delete(f"/teams/{made.caller.team_id}")
    assert answered.status_code == 200, answered.text
    before = made.delivery
    assert await made.emitted() > before
    assert await made.make()
    assert (await made.row())["status"] == "delivered"
    assert len(made.receiving.received) == 2


async def test_a_delivery_that_is_asked_for_again_and_again_keeps_its_last_attempts(made: Made) -> None:
    await fetch(
        "INSERT INTO webhook_attempts (delivery_id, response_code, duration_ms) SELECT $1, 503, n"
        " FROM generate_series(1, 150) n",
        made.delivery,
    )
    path = f"/webhook_endpoints/{made.endpoint}/deliveries/{made.delivery}"
    shown = data_of(await made.caller.get(path))["attempts"]
    assert [one["duration_ms"] for one in shown] == [*range(51, 151)], "the last ones, in their order"
    assert await made.make()
    shown = data_of(await made.caller.get(path))["attempts"]
    assert ([one["response_code"] for one in shown]) == [503] * 99 + [200]
    [kept] = await fetch("SELECT count(*) AS n FROM webhook_attempts WHERE delivery_id = $1", made.delivery)
    assert kept["n"] == 100


async def test_a_worker_that_dies_between_request_and_record_sends_again(made: Made) -> None:
    async with row_lock(made.api.control_dsn, "webhook_deliveries") as waiters:
        attempt = asyncio.create_task(made.make())
        await until(waiters)
        attempt.cancel()
        with pytest.raises(asyncio.CancelledError):
            await attempt
    assert (await made.row())["attempt_count"] == 0
    assert await made.make()
    assert (await made.row())["status"] == "delivered"
    first, second = made.receiving.received
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert first.body == second.body


async def test_a_recorded_attempt_is_not_made_again(made: Made) -> None:
    made.receiving.replies["/hook"] = answer(500)
    assert await made.make()
    assert await made.make()
    row = await made.row()
    assert (row["status"], row["spent"], len(made.receiving.received)) == ("pending", 1, 1)
    made.receiving.replies["/hook"] = answer(200)
    assert await made.make(1)
    assert await made.make(1)
    assert (await made.row())["status"] == "delivered"
    assert len(made.receiving.received) == 2


async def test_the_waits_are_the_schedules_with_jitter(made: Made) -> None:
    made.receiving.replies["/hook"] = answer(500)
    schedule = (0.0, 5.0, 300.0, 1800.0)
    worker = made.attempts(webhook_retry_schedule=schedule)
    await made.make(0, worker)
    for spent, base in enumerate(schedule[1:], 1):
        row = await made.row()
        assert (row["status"], row["waiting"], row["spent"]) == ("pending", True, spent)
        assert 0.8 * base - 1 <= await made.wait() <= 1.2 * base + 1
        assert await made.make(spent, worker)
    row = await made.row()
    assert (row["status"], row["attempt_count"], row["next_attempt_at"]) == ("failed", 4, None)
    assert (row["waiting"], row["finished_at"] is None) == (False, False)


async def test_jitter_is_spread() -> None:
    waits = [jittered(100) for _ in range(1000)]
    assert 80 <= min(waits) < 85
    assert 115 < max(waits) <= 120


@pytest.mark.parametrize(("after", "least", "most"), [("1", 4, 6), ("60", 60, 72), ("999999", 86_400, 103_680)])
async def test_retry_after_lengthens_a_wait_and_never_shortens_one(
    made: Made, after: str, least: float, most: float
) -> None:
    made.receiving.replies["/hook"] = answer(429, Retry_After=after)
    await made.make()
    assert least - 1 <= await made.wait() <= most + 1


async def test_a_wait_that_was_recorded_is_not_postponed(made: Made) -> None:
    """By a failure of ours after the record."""
    made.receiving.replies["/hook"] = answer(500)
    await made.make(0, made.attempts(webhook_retry_schedule=(0.0, 300.0)))
    recorded = await made.wait()
    await waiting.postpone(WaitingDelivery(id=made.delivery, round=0, spent=0), 3600)
    assert await made.wait() == recorded
    await waiting.postpone(WaitingDelivery(id=made.delivery, round=0, spent=1), 3600)
    assert await made.wait() >= 3600


async def test_what_is_put_off_together_does_not_come_back_together(made: Made) -> None:
    made.receiving.replies["/hook"] = answer(503, Retry_After="3600")
    waits = []
    for _ in range(3):
        await made.make()
        waits.append(await made.wait())
        await made.emitted()
    assert len(set(waits)) == 3
    assert min(waits) >= 3600


async def test_of_many_secrets_in_force_the_newest_sign(made: Made) -> None:
    """As many as an earlier version left."""
    for _ in range(5):
        await made.caller.post(f"/webhook_endpoints/{made.endpoint}/secret_rotations", None)
    await fetch("UPDATE webhook_secrets SET expires_at = now() + interval '1 day' WHERE expires_at IS NOT NULL")
    await made.make()
    await made.caller.request("POST", f"/webhook_endpoints/{made.endpoint}/test_deliveries")
    assert [len(one.headers["webhook-signature"].split(" ")) for one in made.receiving.received] == [4, 4]


async def test_revoked_while_it_is_sent(made: Made) -> None:
    let_go = asyncio.Event()
    made.receiving.replies["/hook"] = held(answer(500), let_go)
    sending = asyncio.create_task(made.make())
    await until(made.asked)
    await made.caller.delete(f"/webhook_endpoints/{made.endpoint}")
    let_go.set()
    await sending
    row = await made.row()
    assert (row["status"], row["error_message"], row["attempt_count"]) == ("failed", "The endpoint is revoked.", 1)
    assert await made.make(1)
    assert len(made.receiving.received) == 1


async def test_what_arrives_while_its_endpoint_is_revoked_stays_delivered(made: Made) -> None:
    async with rows_held(made.api.control_dsn, "webhook_deliveries") as holder:
        revoking = asyncio.create_task(made.caller.delete(f"/webhook_endpoints/{made.endpoint}"))
        await until(waiters)
        await holder.execute(
            "UPDATE webhook_deliveries SET status = 'delivered', waiting = false, next_attempt_at = NULL"
        )
    assert (await revoking).status_code == 200
    row = await made.row()
    assert (row["status"], row["error_message"]) == ("delivered", None)


async def test_an_event_dispatched_while_its_endpoint_is_revoked(made: Made) -> None:
    await fetch("UPDATE webhook_endpoints SET revoked_at = now()")
    assert await made.make()
    assert made.receiving.received == []
    row = await made.row()
    assert (row["status"], row["error_message"]) == ("failed", "The endpoint is revoked.")


async def test_a_delivery_that_was_asked_for_again_belongs_to_the_new_round(made: Made) -> None:
    await made.caller.request("POST", f"/webhook_endpoints/{made.endpoint}/deliveries/{made.delivery}/retries")
    assert await made.make()
    assert made.receiving.received == []
    assert (await made.row())["status"] == "pending"
    assert await due() == [made.endpoint]
    assert await made.make(round_=1)
    assert (await made.row())["status"] == "delivered"


async def test_what_was_delivered_shows_the_answer_that_took_it(made: Made) -> None:
    let_go = asyncio.Event()
    made.receiving.replies["/hook"] = held(answer(500), let_go)
    hanging = asyncio.create_task(made.make())
    await until(made.asked)
    made.receiving.replies["/hook"] = answer(202)
    await made.caller.request("POST", f"/webhook_endpoints/{made.endpoint}/deliveries/{made.delivery}/retries")
    assert await made.make(round_=1)
    let_go.set()
    await hanging
    row = await made.row()
    assert (row["status"], row["response_code"], row["error_message"]) == ("delivered", 202, None)
    assert row["attempt_count"] == 2


async def test_no_more_than_so_many_at_once_for_one_endpoint(made: Made) -> None:
    """The others stay due, and none of that counts as an attempt."""
    let_go = asyncio.Event()
    made.receiving.replies["/hook"] = held(answer(200), let_go)
    worker = made.attempts(webhook_concurrency=3)
    numbers = [made.delivery, *[await made.emitted() for _ in range(9)]]
    await fetch("UPDATE webhook_endpoints SET claimed_by = $1, claimed_until = now() + interval '1 minute'", WORKER)
    all_of_them = [WaitingDelivery(id=number, round=0, spent=0) for number in numbers]
    making = [asyncio.create_task(worker.make(one, worker=WORKER, probing=False)) for one in all_of_them]

    def each_is_sent_or_refused() -> bool:
        return len(made.receiving.received) + sum(one.done() for one in making) == len(making)

    await until(each_is_sent_or_refused)
    assert len(made.receiving.received) == 3
    let_go.set()
    assert sorted(await asyncio.gather(*making)) == [False] * 7 + [True] * 3
    rows = await fetch("SELECT 1 FROM webhook_deliveries WHERE waiting AND next_attempt_at <= now() AND spent = 0")
    assert len(rows) == 7
    assert await due() == [made.endpoint]


async def due() -> list[int]:
    rows = await fetch("SELECT id FROM webhook_endpoints WHERE next_attempt_at <= now()")
    return [row["id"] for row in rows]


async def test_a_burst_for_a_quick_receiver_goes_through(made: Made) -> None:
    """What finds no room within a moment waits for its turn, which comes at once."""
    for _ in range(9):
        await made.emitted()
    settings = Settings(webhook_concurrency=2)
    serving = asyncio.create_task(Deliveries(made.attempts(webhook_concurrency=2), settings).serve())

    async def delivered() -> bool:
        return not await fetch("SELECT 1 FROM webhook_deliveries WHERE status <> 'delivered'")

    await until(delivered)
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)
    assert len(made.receiving.received) == 10


async def broken(made: Made, *, until: str = "now() + interval '1 minute'") -> None:
    await fetch(f"UPDATE webhook_endpoints SET slow_failures = 10, circuit_until = {until}, next_attempt_at = NULL")


async def state() -> tuple[int, bool]:
    (row,) = await fetch("SELECT slow_failures, circuit_until > now() AS open FROM webhook_endpoints")
    return row["slow_failures"], bool(row["open"])


@hasty
async def test_attempts_that_hang_break_the_circuit(made: Made) -> None:
    made.receiving.replies["/hook"] = hang
    worker = made.attempts(webhook_concurrency=20)
    await fetch("UPDATE webhook_endpoints SET slow_failures = 8")
    assert await made.make(0, worker)
    assert await state() == (9, False)
    await made.emitted()
    assert await made.make(0, worker)
    assert await state() == (10, True)
    await made.emitted()
    assert not await made.make(0, worker)
    row = await made.row()
    assert row["attempt_count"] == 0
    assert row["webhook_id"] not in {one.headers["webhook-id"] for one in made.receiving.received}
    # Half open: a probe.
    assert await made.make(0, worker, probing=True)
    # Not what has arrived: on a crowded machine its time may be over before.
    assert (await made.row())["attempt_count"] == 1
    assert await state() == (11, True)


async def test_an_answer_of_any_kind_mends_it(made: Made) -> None:
    for reply in (answer(500), answer(200)):
        made.receiving.replies["/hook"] = reply
        await fetch("DELETE FROM webhook_deliveries")
        await broken(made, until="now()")
        waits = await made.emitted()
        await made.emitted()
        assert await made.make(probing=True)
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
        assert await made.make()
        assert (await made.row())["spent"] == 1
    assert await state() == (0, False)


async def test_a_probe_that_fails_quickly_mends_nothing(made: Made) -> None:
    """Else what waits would be let go to a receiver that is not there, one after the other."""
    await fetch("UPDATE webhook_endpoints SET url = 'https://127.0.0.1:1/'")
    await broken(made, until="now()")
    await made.emitted()
    assert await made.make(probing=True)
    assert await state() == (11, True)


@hasty
async def test_what_has_waited_for_longer_than_the_schedule_ends(made: Made) -> None:
    """With the probe that shows that the receiver still hangs, and not before."""
    made.receiving.replies["/hook"] = hang
    await broken(made)
    worker = made.attempts(webhook_retry_schedule=(0.0, 5.0, 300.0))
    numbers = [await made.emitted() for _ in range(5)]
    await fetch("UPDATE webhook_deliveries SET round_started_at = now() - interval '2 hours' WHERE waiting")
    young = await made.emitted()
    made.delivery = numbers[0]
    assert not await made.make(0, worker)
    assert await made.make(0, worker, probing=True)
    rows = await fetch("SELECT id, status, attempt_count, waiting FROM webhook_deliveries WHERE id >= $1", numbers[0])
    states = {row["id"]: (row["status"], row["attempt_count"], row["waiting"]) for row in rows}
    assert states.pop(numbers[0]) == ("failed", 1, False)
    assert states.pop(young) == ("pending", 0, True)
    assert list(states.values()) == [("failed", 0, False)] * 4
    # None where its time was over before it had arrived.
    assert len(made.receiving.received) <= 1


async def test_what_is_overdue_ends_behind_the_lock_of_its_endpoint(made: Made) -> None:
    """Which a revocation takes first too: else each could wait for a delivery that the other has locked."""
    await fetch("UPDATE webhook_deliveries SET round_started_at = now() - interval '2 hours'")
    async with row_lock(made.api.control_dsn, "webhook_endpoints") as waiters:
        ending = asyncio.create_task(waiting.end_overdue(made.endpoint, timedelta(hours=1)))

        async def waits_or_has_ended() -> bool:
            return ending.done() or await waiters() > 0

        await until(waits_or_has_ended)
        assert (await made.row())["status"] == "pending"
    await ending
    assert (await made.row())["status"] == "failed"


async def test_what_is_overdue_ends_a_part_at_a_time(made: Made) -> None:
    """Else the endpoint's row would be locked for long, and with it the dispatch of other teams' events."""
    (row,) = await fetch(
        "WITH made AS (INSERT INTO webhook_deliveries"
        " (webhook_id, endpoint_id, event_type, payload, next_attempt_at, waiting, round_started_at)"
        " SELECT 'msg_' || n, $1::bigint, 'ping', '{}', now(), true, now() - interval '2 hours'"
        " FROM generate_series(1, $2::int) n RETURNING id) SELECT max(id) AS last FROM made",
        made.endpoint,
        waiting.MOST_ENDED + 500,
    )
    async with rows_held(made.api.control_dsn, f"webhook_deliveries WHERE id = {row['last']}"):
        ending = asyncio.create_task(waiting.end_overdue(made.endpoint, timedelta(hours=1)))

        async def a_part_has_ended() -> bool:
            return await count(made.endpoint, "failed") == waiting.MOST_ENDED

        await until(a_part_has_ended)
    await ending
    assert await count(made.endpoint, "failed") == waiting.MOST_ENDED + 500
    assert (await made.row())["status"] == "pending", "it has not waited for long"


async def test_a_delivery_that_waited_for_another_reason_keeps_its_schedule(made: Made) -> None:
    """Such as for a worker that was away for days."""
    made.receiving.replies["/hook"] = answer(500)
    await fetch("UPDATE webhook_deliveries SET round_started_at = now() - interval '30 days'")
    await made.make()
    row = await made.row()
    assert (row["status"], row["spent"]) == ("pending", 1)


async def test_a_worker_without_the_claim_sends_nothing(made: Made) -> None:
    """One that was stopped for a while: another worker may have its endpoints by now."""
    delivery = WaitingDelivery(id=made.delivery, round=0, spent=0)
    for holder, expired in ((UUID(int=2), "1 minute"), (WORKER, "-1 second")):
        await fetch(
            "UPDATE webhook_endpoints SET claimed_by = $1, claimed_until = now() + $2::text::interval", holder, expired
        )
        assert not await made.attempts().make(delivery, worker=WORKER, probing=False)
    assert made.receiving.received == []
    assert await made.make()
    assert len(made.receiving.received) == 1


async def test_an_event_for_an_endpoint_that_hangs_waits_for_its_probe(made: Made) -> None:
    await broken(made)
    await fetch("UPDATE webhook_endpoints SET next_attempt_at = NULL")
    await emit(made.caller)
    assert await dispatch(10, first_wait=0) == 1
    (row,) = await fetch("SELECT next_attempt_at = circuit_until AS then FROM webhook_endpoints")
    assert row["then"]


async def test_a_first_wait(made: Made) -> None:
    await fetch("DELETE FROM webhook_deliveries")
    await fetch("UPDATE webhook_endpoints SET next_attempt_at = NULL")
    await emit(made.caller)
    assert await dispatch(10, first_wait=600) == 1
    (row,) = await fetch(
        "SELECT waiting, extract(epoch FROM next_attempt_at - created_at)::float8 AS wait FROM webhook_deliveries"
    )
    assert row["waiting"]
    assert 470 <= row["wait"] <= 730
    assert await due() == []


async def test_an_event_is_dispatched_once_however_many_do_so(made: Made) -> None:
    await fetch("DELETE FROM webhook_deliveries")
    for _ in range(30):
        await emit(made.caller)
    batches = await asyncio.gather(*(dispatch(10, first_wait=0) for _ in range(8)))
    while events := await dispatch(10, first_wait=0):
        batches.append(events)
    assert sum(batches) == 30
    rows = await fetch(
        "SELECT (SELECT count(*) FROM webhook_deliveries) AS deliveries,"
        " (SELECT count(*) FROM events WHERE dispatched_at IS NULL) AS left"
    )
    assert dict(rows[0]) == {"deliveries": 30, "left": 0}
    assert await due() == [made.endpoint]


async def test_an_event_whose_change_was_rolled_back_is_no_event(made: Made) -> None:
    before = len(await fetch("SELECT 1 FROM events"))

    class Undone(Exception):
        pass

    with pytest.raises(Undone):
        await roll_back(made, Undone)
    assert await dispatch(10, first_wait=0) == 0
    assert len(await fetch("SELECT 1 FROM events")) == before


async def roll_back(made: Made, undone: type[Exception]) -> None:
    async with transaction():
        await emit(made.caller)
        raise undone
