"""Whether callers who were let in a while ago still may see what is a team's, for answers that take long."""

from collections.abc import Collection
from time import monotonic
from uuid import UUID

import msgspec

from app.auth.principal import Principal
from app.auth.roles import Role, roles_that_may
from app.auth.scopes import Scope, granting
from app.auth.sessions import is_live, which_stand
from app.core.errors import InsufficientRole, InvalidApiKey, NotAMember, SessionEnded
from app.store.session import fetch_all, fetch_one

LONG_SECONDS = 1.0
"""An answer that took longer is given only to a caller who may still have it."""


class Standing(msgspec.Struct, frozen=True):
    """A caller's key or session, and the team whose things it sees: those of one `database`, if it is given."""

    key_id: int
    """0 for a session."""
    team_id: int
    database: UUID | None = None
    session_id: int | None = None
    key_hash: bytes = b""
    """The hash of the key's text: another text may have replaced it since."""
    address: str | None = None
    """The client's address, for a key's networks."""

    @property
    def holder(self) -> tuple[int, int | None]:
        """The key or the session."""
        return self.key_id, self.session_id


async def still_good(asked: Collection[Standing], scope: Scope) -> set[Standing]:
    """Those of `asked` whose session has not ended, or whose key is neither revoked nor expired, has that scope and is
    for that team and database and the client's address; and whose user is in the team with a role that may do as
    much."""
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
        SELECT asked.key_id, asked.team_id, asked.database, asked.key_hash, asked.address
        FROM unnest($1::bigint[], $2::bigint[], $4::uuid[], $6::bytea[], $7::text[])
             AS asked (key_id, team_id, database, key_hash, address)
        JOIN api_keys k ON k.id = asked.key_id
             AND (k.hash = asked.key_hash OR k.previous_hash = asked.key_hash AND k.previous_until > now())
        JOIN memberships m ON m.user_id = k.user_id AND m.team_id = asked.team_id
        WHERE k.revoked_at IS NULL AND coalesce(k.expires_at > now(), true) AND k.scopes && $3::text[]
          AND m.role = any($5::text[]) AND m.team_id <> all(k.ended_teams)
          AND coalesce(k.team_id = asked.team_id, true) AND (k.databases IS NULL OR asked.database = any(k.databases))
          AND (cardinality(k.allowed_ips) = 0 OR asked.address::inet <<= any(k.allowed_ips::inet[]))
        """,
        [one.key_id for one in sought],
        [one.team_id for one in sought],
        granting(scope),
        [one.database for one in sought],
        list(roles_that_may([scope])),
        [one.key_hash for one in sought],
        [one.address for one in sought],
    )
    return set(found)


class _Now(msgspec.Struct, frozen=True):
    ended: bool
    roles: list[Role | None]


async def expect(caller: Principal, team_id: int | None) -> None:
    """Checks that the caller would still be let in, and has no smaller role in this team than when they were let in.
    Raises `InvalidApiKey`, `SessionEnded`, `NotAMember` or `InsufficientRole`."""
    await _expect(caller, [] if team_id is None or caller.role_in(team_id) is None else [team_id])


async def expect_in_all_teams(caller: Principal) -> None:
    """The same for every team that the caller was let in for."""
    await _expect(caller, caller.readable_teams)


async def expect_after(began: float, caller: Principal, team_id: int | None) -> None:
    """As `expect`, if more than `LONG_SECONDS` have passed since `began`, by the clock of `monotonic`."""
    if _is_long_ago(began):
        await expect(caller, team_id)


async def expect_in_all_teams_after(began: float, caller: Principal) -> None:
    """As `expect_in_all_teams`, in the same case."""
    if _is_long_ago(began):
        await expect_in_all_teams(caller)


def _is_long_ago(moment: float) -> bool:
    return monotonic() - moment > LONG_SECONDS


async def _expect(caller: Principal, teams: list[int]) -> None:
    if caller.session_id is not None and not await is_live(caller.session_id):
        raise SessionEnded
    # By the clock as it is: a transaction that it is asked in may have waited since it began.
    now = await fetch_one(
        _Now,
        """
        SELECT k.revoked_at IS NOT NULL OR coalesce(k.expires_at <= clock_timestamp(), false)
               OR NOT (k.hash = $4 OR coalesce(k.previous_hash = $4 AND k.previous_until > clock_timestamp(), false))
               OR NOT k.scopes @> $5::text[]
               OR NOT coalesce(k.team_id = $6, k.team_id IS NULL)
               OR NOT coalesce(k.databases @> $7::uuid[], k.databases IS NULL)
               OR NOT coalesce(cardinality(k.allowed_ips) = 0 OR $8::text::inet <<= any(k.allowed_ips::inet[]), false)
               AS ended,
               array(
                   SELECT m.role FROM unnest($2::bigint[]) WITH ORDINALITY AS asked (team, place)
                   LEFT JOIN memberships m
                     ON m.user_id = k.user_id AND m.team_id = asked.team AND m.team_id <> ALL (k.ended_teams)
                   ORDER BY asked.place
               ) AS roles
        FROM api_keys k WHERE k.id = $1
        UNION ALL
        SELECT false, array(
                   SELECT m.role FROM unnest($2::bigint[]) WITH ORDINALITY AS asked (team, place)
                   LEFT JOIN memberships m ON m.user_id = u.id AND m.team_id = asked.team
                   ORDER BY asked.place
               )
        FROM users u WHERE u.id = $3
        """,
        caller.key_id,
        teams,
        None if caller.session_id is None else caller.user_id,
        caller.key_hash,
        caller.scopes,
        caller.key_team_id,
        caller.databases,
        caller.address,
    )
    if now is None or now.ended:
        raise InvalidApiKey("This API key has been revoked or changed, or has expired, since the request came.")
    for team_id, role in zip(teams, now.roles, strict=True):
        _compare(team_id, caller.role_in(team_id), role)


def _compare(team_id: int, before: Role | None, now: Role | None) -> None:
    if now is None:
        raise NotAMember(team_id)
    if before is not None and not now.covers(before):
        raise InsufficientRole(now, [role for role in Role if role.covers(before)], team_id)
