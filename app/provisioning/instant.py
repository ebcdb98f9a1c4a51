"""A create from the pool for which nothing is to be asked of anyone else: one statement that gives a member that was
looked at to the team, keeps the answer under the request's key and tells of it, all of that or nothing."""

from datetime import datetime
from time import perf_counter

import msgspec
from msgspec import UNSET

from app.auth.principal import Principal
from app.auth.teams import Team
from app.core.ids import new_uuid
from app.core.secrets import SecretBox
from app.databases.records import DatabaseRecord
from app.databases.schemas import CreateDatabase
from app.databases.views import masked_view
from app.outbox.event_types import EventType
from app.outbox.events import Notices, payload_of
from app.pool.claim import Wish, note_claim
from app.pool.ready import Found, ReadyMembers
from app.provisioning.created import created
from app.provisioning.creation import wish_of
from app.provisioning.teams import asked_team
from app.store.session import fetch
from app.web.idempotency import Answer, Keeping, Kept

# While deleted databases of the team's are being destroyed, nothing is written: what it holds is to be counted.
# Whoever claims the member first, the others find its row changed, or about to be, and nothing is written. So it is
# when its host's row has changed, or the key has a row already, be it one that has expired.
_CREATE = """
WITH member AS (
    SELECT m.id FROM databases m JOIN engine_hosts h ON h.id = m.host_id
    WHERE m.id = $1 AND m.xmin = $2 AND h.xmin = $3
      AND NOT EXISTS (SELECT FROM databases WHERE team_id = $11 AND status = 'deleted' AND destroyed_at IS NULL
                                              AND destroy_at <= now())
    FOR NO KEY UPDATE OF m SKIP LOCKED
), key AS (
    INSERT INTO idempotency_keys
        (user_id, key, fingerprint, resource, response_status, response_sealed, expires_at)
    SELECT $4, $5, $6, $7, $8, $9, now() + make_interval(secs => $10) FROM member
    ON CONFLICT (user_id, key) DO NOTHING RETURNING user_id
), claimed AS (
    UPDATE databases d SET
        team_id = $11, created_by_id = key.user_id, name = $12, plan = $13, storage_hard_limit_gb = $14,
        connection_hard_limit = $15, warning_threshold_pct = $16,
        position = DEFAULT,
        created_at = $17, updated_at = $17, provisioned_at = $17
    FROM member, key WHERE d.id = member.id RETURNING d.id
), event AS (
    INSERT INTO events (uuid, type, database_id, team_id, payload)
    SELECT $18, $19, id, $11, $20::jsonb FROM claimed RETURNING id
)
SELECT EXISTS (SELECT FROM member) AS ready, EXISTS (SELECT FROM event) AS done
"""


async def create_at_once(
    box: SecretBox,
    members: ReadyMembers[DatabaseRecord],
    notices: Notices,
    principal: Principal,
    request: CreateDatabase,
    keeping: Keeping,
) -> Kept | None:
    """None when nothing was done: the pool has no member that is just what is asked for, another create took it, the
    key has come before, the team's deleted databases are to be counted, or there is more to do than this. Raises
    `InvalidField`."""
    team = asked_team(principal, request)
    # A free team's databases are counted under a lock.
    if team.tier == "free" or request.blueprint_uuid is not UNSET or request.blueprint_variables:
        return None
    started = perf_counter()
    wish = wish_of(principal, request, team)
    for afresh in (False, True):
        async with members.look(wish, afresh=afresh) as found:
            if found is None:
                continue
            record = _claimed(found.row, wish, team, principal.admitted_at)
            kept = keeping(str(record.uuid), Answer(201, created(record, box, waited=0)))
            ready, done = await _claim(found, record, kept)
        if done:
            note_claim(wish.engine, record.region, "hit", perf_counter() - started)
            notices.send_soon()
        if ready:
            members.look_ahead_soon(wish)
            return kept if done else None
    return None


async def _claim(found: Found[DatabaseRecord], record: DatabaseRecord, kept: Kept) -> tuple[bool, bool]:
    """Whether the member was there to be claimed, and whether it has become what `record` says."""
    event = EventType.DATABASE_PROVISIONED
    (row,) = await fetch(
        _CREATE,
        found.id,
        found.version,
        found.host_version,
        kept.user_id,
        kept.key,
        kept.fingerprint,
        kept.resource,
        kept.response_status,
        kept.response_sealed,
        kept.ttl,
        record.team_id,
        record.name,
        record.plan,
        record.storage_hard_limit_gb,
        record.connection_hard_limit,
        record.warning_threshold_pct,
        record.created_at,
        new_uuid(),
        event.value,
        payload_of(event, masked_view(record)),
    )
    return row["ready"], row["done"]


def _claimed(member: DatabaseRecord, wish: Wish, team: Team, at: datetime) -> DatabaseRecord:
    """The row as it is once it is the team's."""
    return msgspec.structs.replace(
        member,
        team_id=team.id,
        team_name=team.name,
        name=wish.name,
        plan=wish.plan,
        storage_hard_limit_gb=wish.quotas.storage_hard_limit_gb,
        connection_hard_limit=wish.quotas.connection_hard_limit,
        warning_threshold_pct=wish.quotas.warning_threshold_pct,
        created_at=at,
        updated_at=at,
        provisioned_at=at,
    )
