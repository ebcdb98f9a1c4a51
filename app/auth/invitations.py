"""Invitations: a token that brings one person into a team, in a role, once. Only its SHA-256 is stored."""

import secrets
from datetime import datetime

import msgspec

from app.auth.keys import hash_key
from app.auth.roles import Role
from app.auth.users import comparable
from app.store.session import execute, fetch_all, fetch_exists, fetch_one, fetch_scalar

PREFIX = "inv_"


class InvitationRecord(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    team_id: int
    role: Role
    email: str | None
    """The address that may accept it; None if anybody with the link may."""
    invited_by: int | None
    """A user; None for the operator."""
    accepted_by: int | None
    accepted_at: datetime | None
    expired: bool
    expires_at: datetime
    created_at: datetime

    @property
    def open(self) -> bool:
        return self.accepted_at is None and not self.expired

    def is_for(self, email: str) -> bool:
        """Whether the person with this address may accept it."""
        return self.email is None or comparable(self.email) == comparable(email)


_SELECT = """
SELECT id, team_id, role, email, invited_by_id AS invited_by, accepted_by_id AS accepted_by, accepted_at,
       expires_at <= now() AS expired, expires_at, created_at
FROM invitations
"""


async def find_by_token(token: str) -> InvitationRecord | None:
    return await fetch_one(InvitationRecord, f"{_SELECT} WHERE token_hash = $1", hash_key(token))


async def find_invitation(team_id: int, invitation: int) -> InvitationRecord | None:
    return await fetch_one(InvitationRecord, f"{_SELECT} WHERE team_id = $1 AND id = $2", team_id, invitation)


async def may_have_been_of(team_id: int, invitation: int) -> bool:
    """Whether this is an invitation of the team, or was one: the id was given out, and is no other team's now. An
    invitation that was withdrawn has no row, so its team isn't known."""
    return await fetch_exists(
        """
        SELECT 1 WHERE $2 <= pg_sequence_last_value(pg_get_serial_sequence('invitations', 'id')::regclass)
                   AND NOT EXISTS (SELECT FROM invitations WHERE id = $2 AND team_id <> $1)
        """,
        team_id,
        invitation,
    )


async def list_invitations(team_id: int, *, after: int | None, limit: int) -> list[InvitationRecord]:
    """The team's invitations, newest first, accepted and expired ones too."""
    sql = f"{_SELECT} WHERE team_id = $1 AND ($2::bigint IS NULL OR id < $2) ORDER BY id DESC LIMIT $3"
    return await fetch_all(InvitationRecord, sql, team_id, after, limit)


async def count_open(team_id: int) -> int:
    return await fetch_scalar(
        int,
        "SELECT count(*) FROM invitations WHERE team_id = $1 AND accepted_at IS NULL AND expires_at > now()",
        team_id,
    )


async def insert_invitation(
    team_id: int, role: Role, *, by: int | None, seconds: int, email: str | None = None
) -> tuple[int, str]:
    """Makes an invitation, and returns its id and the token. Deletes the team's invitations that expired more than a
    month ago."""
    await execute("DELETE FROM invitations WHERE team_id = $1 AND expires_at < now() - interval '30 days'", team_id)
    token = PREFIX + secrets.token_urlsafe(32)
    invitation = await fetch_scalar(
        int,
        """
        INSERT INTO invitations (team_id, role, token_hash, invited_by_id, expires_at, email)
        VALUES ($1, $2, $3, $4, now() + make_interval(secs => $5), $6) RETURNING id
        """,
        team_id,
        role,
        hash_key(token),
        by,
        float(seconds),
        email,
    )
    return invitation, token


async def note_accepted(invitation: int, user_id: int) -> None:
    await execute("UPDATE invitations SET accepted_at = now(), accepted_by_id = $2 WHERE id = $1", invitation, user_id)


async def delete_invitation(invitation: int) -> None:
    await execute("DELETE FROM invitations WHERE id = $1", invitation)


async def withdraw_beyond(team_id: int, user_id: int, still: list[Role]) -> None:
    """Deletes this person's invitations to the team that nobody has accepted, but for those to roles that they still
    may give."""
    await execute(
        """
        DELETE FROM invitations
        WHERE team_id = $1 AND invited_by_id = $2 AND accepted_at IS NULL AND NOT role = any($3::text[])
        """,
        team_id,
        user_id,
        still,
    )
