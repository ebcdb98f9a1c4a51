"""Whether callers who were let in a while ago still may see what is a team's, for answers that take long."""

from collections.abc import Collection
from uuid import UUID

import msgspec

from app.auth.roles import roles_that_may
from app.auth.scopes import Scope, granting
from app.store.session import fetch_all


class Standing(msgspec.Struct, frozen=True):
    """A caller's key, and the team whose things it sees: those of one database, if they are one's."""

    key_id: int
    team_id: int
    database: UUID | None = None


async def still_good(asked: Collection[Standing], scope: Scope) -> set[Standing]:
    """Those whose key is neither revoked nor expired, has that scope and is for that team and database, and whose user
    is in the team with a role that may do as much."""
    sought = list(set(asked))
    found = await fetch_all(
        Standing,
        """
        SELECT asked.key_id, asked.team_id, asked.database
        FROM unnest($1::bigint[], $2::bigint[], $4::uuid[]) AS asked (key_id, team_id, database)
        JOIN api_keys k ON k.id = asked.key_id
        JOIN memberships m ON m.user_id = k.user_id AND m.team_id = asked.team_id
        WHERE k.revoked_at IS NULL AND coalesce(k.expires_at > now(), true) AND k.scopes && $3::text[]
          AND m.role = any($5::text[]) AND m.team_id <> all(k.ended_teams)
          AND coalesce(k.team_id = asked.team_id, true) AND (k.databases IS NULL OR asked.database = any(k.databases))
        """,
        [one.key_id for one in sought],
        [one.team_id for one in sought],
        granting(scope),
        [one.database for one in sought],
        list(roles_that_may([scope])),
    )
    return set(found)
