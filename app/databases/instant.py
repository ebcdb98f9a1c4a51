"""A create from the pool for which nothing is to be asked of anyone else: one look, and one statement that gives the
member to the team, keeps the answer under the request's key and tells of it, all of that or nothing."""

from time import perf_counter

import msgspec
from msgspec import UNSET

from app.auth.principal import Principal
from app.core.ids import new_uuid
from app.core.secrets import SecretBox
from app.databases.created import created
from app.databases.creation import wish_of
from app.databases.records import DatabaseRecord
from app.databases.schemas import CreateDatabase
from app.databases.teams import asked_team
from app.databases.views import masked_view
from app.events.outbox import CHANNEL, payload_of
from app.events.types import EventType
from app.pool.claim import Wish, note_claim
from app.pool.ready import Found, ReadyMembers
from app.store.session import fetch
from app.web.idempotency import Answer, Keeping

# Whoever claims the member first, the others find its row changed, or about to be, and nothing is written. So it is
# when the key has a row already, be it one that has expired.
_CREATE = """
WITH member AS (
    SELECT id FROM databases WHERE id = $1 AND xmin = $2 FOR NO KEY UPDATE SKIP LOCKED
), key AS (
    INSERT INTO idempotency_keys
        (user_id, key, fingerprint, resource, response_status, response_sealed, expires_at)
    SELECT $3, $4, $5, $6, $7, $8, now() + make_interval(secs => $9) FROM member
    ON CONFLICT (user_id, key) DO NOTHING RETURNING user_id
), claimed AS (
    UPDATE databases d SET
        team_id = $10, created_by_id = key.user_id, name = $11, plan = $12, storage_hard_limit_gb = $13,
        connection_hard_limit = $14, warning_threshold_pct = $15,
        position = DEFAULT,
        created_at = $16, updated_at = $16, provisioned_at = $16
    FROM member, key WHERE d.id = member.id RETURNING d.id
)
INSERT INTO events (uuid, type, database_id, team_id, payload)
SELECT $17, $18, id, $10, $19::jsonb FROM claimed RETURNING pg_notify($20, '')
"""


async def create_at_once(
    box: SecretBox, members: ReadyMembers, principal: Principal, request: CreateDatabase, keeping: Keeping
) -> Answer | None:
    """None when nothing was done: the pool has no member that is just what is asked for, another create took it, the
    key has come before, or there is more to do than this. Raises `InvalidField`."""
    team = asked_team(principal, request)
    # A free team's databases are counted under a lock.
    if team.tier == "free" or request.blueprint_uuid is not UNSET or request.blueprint_variables:
        return None
    started = perf_counter()
    wish = wish_of(principal, request, team)
    async with members.look(wish, DatabaseRecord) as found:
        answer = await _claim(box, wish, found, keeping) if found else None
    if found and answer:
        note_claim(wish.engine, found.row.region, "hit", perf_counter() - started)
    return answer


async def _claim(box: SecretBox, wish: Wish, found: Found[DatabaseRecord], keeping: Keeping) -> Answer | None:
    record = _claimed(wish, found)
    answer = Answer(201, created(record, box, waited=0))
    kept = keeping(str(record.uuid), answer)
    event = EventType.DATABASE_PROVISIONED
    done = await fetch(
        _CREATE,
        found.id,
        found.version,
        kept.user_id,
        kept.key,
        kept.fingerprint,
        kept.resource,
        kept.response_status,
        kept.response_sealed,
        kept.ttl,
        wish.team_id,
        wish.name,
        wish.plan,
        wish.quotas.storage_hard_limit_gb,
        wish.quotas.connection_hard_limit,
        wish.quotas.warning_threshold_pct,
        found.at,
        new_uuid(),
        event.value,
        payload_of(event, masked_view(record)),
        CHANNEL,
    )
    return answer if done else None


def _claimed(wish: Wish, found: Found[DatabaseRecord]) -> DatabaseRecord:
    """The row as it is once it is the team's."""
    return msgspec.structs.replace(
        found.row,
        team_id=wish.team_id,
        name=wish.name,
        plan=wish.plan,
        storage_hard_limit_gb=wish.quotas.storage_hard_limit_gb,
        connection_hard_limit=wish.quotas.connection_hard_limit,
        warning_threshold_pct=wish.quotas.warning_threshold_pct,
        created_at=found.at,
        updated_at=found.at,
        provisioned_at=found.at,
    )
