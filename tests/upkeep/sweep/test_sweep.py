"""What has had its time goes, in batches; what has not stays."""

from datetime import timedelta
from uuid import uuid4

import pytest

from app.store.session import fetch, raw_connection
from app.upkeep import sweep as service
from app.upkeep.sweep import Retention

KEYS = "expired idempotency keys"
KEPT = Retention(history=timedelta(days=30), questions=timedelta(days=90), operations=timedelta(days=90))
_AGO, _AHEAD = timedelta(hours=-1), timedelta(hours=1)

pytestmark = pytest.mark.usefixtures("own_store")


async def _key(*, expires: timedelta, answered: bool = True, locked: timedelta | None = None) -> str:
    key = str(uuid4())
    await fetch("INSERT INTO users (email, name) VALUES ('one@example.com', 'One') ON CONFLICT DO NOTHING")
    await fetch(
        "INSERT INTO idempotency_keys (user_id, key, fingerprint, response_status, locked_until, expires_at)"
        " SELECT id, $1, '', $2, now() + $3::interval, now() + $4::interval FROM users",
        key,
        200 if answered else None,
        locked,
        expires,
    )
    return key


async def _kept() -> set[str]:
    return {row["key"] for row in await fetch("SELECT key FROM idempotency_keys")}


async def test_expired_keys_go_and_others_stay() -> None:
    kept = {
        await _key(expires=_AHEAD),
        await _key(expires=_AHEAD, answered=False, locked=_AGO),
        await _key(expires=_AGO, answered=False, locked=_AHEAD),
    }
    await _key(expires=_AGO)
    await _key(expires=_AGO, answered=False, locked=_AGO)
    swept = await service.sweep(KEYS, KEPT)
    assert (swept.removed, swept.more) == (2, False)
    assert await _kept() == kept
    assert (await service.sweep(KEYS, KEPT)).removed == 0


async def test_one_step_removes_so_many_and_says_that_there_is_more() -> None:
    for _ in range(41):
        await _key(expires=_AGO)
    first = await service.sweep(KEYS, KEPT, batch=2)
    assert (first.removed, first.more) == (40, True)
    assert (await service.sweep(KEYS, KEPT, batch=2)).removed == 1


async def test_what_somebody_holds_is_passed_over() -> None:
    held, free = await _key(expires=_AGO), await _key(expires=_AGO)
    async with raw_connection() as connection, connection.transaction():
        await connection.execute("SELECT 1 FROM idempotency_keys WHERE key = $1 FOR UPDATE", held)
        assert (await service.sweep(KEYS, KEPT)).removed == 1
        assert free not in await _kept()
    assert (await service.sweep(KEYS, KEPT)).removed == 1


async def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(LookupError):
        await service.sweep("everything", KEPT)
