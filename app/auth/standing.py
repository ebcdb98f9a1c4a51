"""Whether callers who were let in a while ago still may see what is a team's, for answers that take long."""

from collections.abc import Collection

import msgspec

from app.auth.scopes import Scope, granting
from app.store.session import fetch_all


class Standing(msgspec.Struct, frozen=True):
    """A caller's key, and the team whose things it sees."""

    key_id: int
    team_id: int


async def still_good(asked: Collection[Standing], scope: Scope) -> set[Standing]:
    """Those whose key is neither revoked nor expired and has that scope, and whose user is in the team."""
    pairs = sorted({(one.key_id, one.team_id) for one in asked})
    found = await fetch_all(
        Standing,
        """
        SELECT asked.key_id, asked.team_id FROM unnest($1::bigint[], $2::bigint[]) AS asked (key_id, team_id)
        JOIN api_keys k ON k.id = asked.key_id
        JOIN memberships m ON m.user_id = k.user_id AND m.team_id = asked.team_id
        WHERE k.revoked_at IS NULL AND coalesce(k.expires_at > now(), true) AND k.scopes && $3::text[]
        """,
        [key_id for key_id, _ in pairs],
        [team_id for _, team_id in pairs],
        granting(scope),
    )
    return set(found)
