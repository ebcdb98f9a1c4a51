"""Whether callers who were let in a while ago still may see what is a team's, for answers that take long."""

from collections.abc import Collection
from uuid import UUID

import msgspec

from app.auth.principal import Principal
from app.auth.roles import Role, roles_that_may
from app.auth.scopes import Scope, granting
from app.auth.sessions import is_live, which_stand
from app.core.errors import InsufficientRole, InvalidApiKey, NotAMember, SessionEnded
from app.store.session import fetch_all, fetch_one

LONG_SECONDS = 1.0
"""An answer that took longer is given to whom it would be given now."""


class Standing(msgspec.Struct, frozen=True):
    """A caller's key or session, and the team whose things it sees: those of one database, if they are one's."""

    key_id: int
    """0 for a session."""
    team_id: int
    database: UUID | None = None
    session_id: int | None = None

    @property
    def holder(self) -> tuple[int, int | None]:
        """The key or the session."""
        return self.key_id, self.session_id


async def still_good(asked: Collection[Standing], scope: Scope) -> set[Standing]:
    """Those whose session has not ended, or whose key is neither revoked nor expired, has that scope and is for that
    team and database; and whose user is in the team with a role that may do as much."""
    people = [one for one in set(asked) if one.session_id is not None]
    sought = [one for one in set(asked) if one.session_id is None]
    standing = await _people_who_stand(people, scope) if people else set()
    return standing | await _keys_that_stand(sought, scope) if sought else standing


async def _people_who_stand(people: list[Standing], scope: Scope) -> set[Standing]:
    places = [(one.session_id or 0, one.team_id) for one in people]
    good = await which_stand(places, list(roles_that_may([scope])))
    return {one for one in people if (one.session_id, one.team_id) in good}


async def _keys_that_stand(sought: list[Standing], scope: Scope) -> set[Standing]:
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


class _Now(msgspec.Struct, frozen=True):
    ended: bool
    role: Role | None


async def expect(caller: Principal, team_id: int | None) -> None:
    """That the caller would still be let in, and has no smaller role in this team than when it was. Raises
    `InvalidApiKey`, `SessionEnded`, `NotAMember` or `InsufficientRole`."""
    if caller.session_id is not None and not await is_live(caller.session_id):
        raise SessionEnded
    now = await fetch_one(
        _Now,
        """
        SELECT k.revoked_at IS NOT NULL OR coalesce(k.expires_at <= now(), false) AS ended, m.role
        FROM api_keys k LEFT JOIN memberships m
          ON m.user_id = k.user_id AND m.team_id = $2 AND m.team_id <> ALL (k.ended_teams)
        WHERE k.id = $1
        UNION ALL
        SELECT false, m.role FROM users u LEFT JOIN memberships m ON m.user_id = u.id AND m.team_id = $2
        WHERE u.id = $3
        """,
        caller.key_id,
        team_id,
        None if caller.session_id is None else caller.user_id,
    )
    if now is None or now.ended:
        raise InvalidApiKey("This API key has been revoked, or has expired, since the request came.")
    before = None if team_id is None else caller.role_in(team_id)
    if team_id is None or before is None:
        return
    if now.role is None:
        raise NotAMember(team_id)
    if not now.role.covers(before):
        raise InsufficientRole(now.role, [role for role in Role if role.covers(before)], team_id)
