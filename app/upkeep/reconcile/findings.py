"""Findings of consistency checks, stored from the first run that sees them to the last."""

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from app.hosts.records import keep_host
from app.store.session import execute, fetch_all, fetch_values, transaction


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """One violated rule."""

    rule: str
    subject: str
    """A database's uuid, a name on a host, or a key."""
    detail: str
    name: str | None = None
    """The name of the database, if it is one of ours."""
    team: str | None = None


class Report(msgspec.Struct, frozen=True, kw_only=True):
    ok: bool
    violations: list[Violation]
    notes: list[Violation]
    """Worth knowing, but no violations."""


Marks = Mapping[str, str]
"""The markers of orphans, by name. An orphan with another marker is a new one."""


_WRITE = """
INSERT INTO findings (host_id, rule, subject, mark, detail)
SELECT $1::bigint, * FROM unnest($2::text[], $3::text[], $4::text[], $5::text[])
ON CONFLICT (rule, subject, mark, coalesce(host_id, 0))
DO UPDATE SET detail = excluded.detail, last_seen_at = now()
"""


_DELETE_UNSEEN = """
DELETE FROM findings f WHERE host_id IS NOT DISTINCT FROM $1::bigint AND last_seen_at < now() AND NOT EXISTS (
    SELECT FROM unnest($2::text[], $3::text[]) AS u (rule, subject) WHERE u.rule = f.rule AND u.subject = f.subject
)
"""


async def write(
    host_id: int | None,
    violations: Sequence[Violation],
    marks: Marks,
    *,
    complete: bool = True,
    unlooked: Sequence[tuple[str, str]] = (),
) -> None:
    """Stores the findings of one run about a host, or about our own records. Deletes the findings that the run no
    longer saw if it was `complete`: a host that doesn't answer proves nothing. Nor does it prove anything of the
    `unlooked` rules and subjects, which it didn't come to. Does nothing for a host that was removed during the run."""
    unique = {(one.rule, one.subject): one for one in violations}
    rows = [(one.rule, one.subject, marks.get(one.subject, ""), one.detail) for one in unique.values()]
    async with transaction():
        # No later run would end what is found of a host that is gone.
        if host_id is not None and not await keep_host(host_id):
            return
        await execute(_WRITE, host_id, *([row[column] for row in rows] for column in range(4)))
        if complete:
            await execute(_DELETE_UNSEEN, host_id, *([one[column] for one in unlooked] for column in range(2)))


async def subjects_of(host_id: int, rules: Sequence[str]) -> list[str]:
    """The subjects that runs have found to violate one of these rules on that host, as far as they know."""
    return await fetch_values(
        str, "SELECT DISTINCT subject FROM findings WHERE host_id = $1 AND rule = any($2::text[])", host_id, list(rules)
    )


class StoredFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A violation that scheduled runs have found, and that is not over as far as they know."""

    id: int
    host_id: int | None
    """None for a finding about our own records."""
    rule: str
    subject: str
    detail: str
    first_seen_at: datetime
    last_seen_at: datetime


async def list_stored(*, after: int | None, limit: int) -> list[StoredFinding]:
    """The stored findings, newest first, from the one that follows `after` on."""
    return await fetch_all(
        StoredFinding,
        "SELECT id, host_id, rule, subject, detail, first_seen_at, last_seen_at FROM findings"
        " WHERE $1::bigint IS NULL OR id < $1 ORDER BY id DESC LIMIT $2",
        after,
        limit,
    )


async def forget_host(host_id: int) -> None:
    """Deletes the findings of a removed host, which no run would end."""
    await execute("DELETE FROM findings WHERE host_id = $1", host_id)


async def reset_first_seen(host_id: int, rule: str, subjects: Sequence[str]) -> None:
    """Counts these findings from this run on."""
    await execute(
        "UPDATE findings SET first_seen_at = last_seen_at"
        " WHERE host_id = $1 AND rule = $2 AND subject = any($3::text[])",
        host_id,
        rule,
        list(subjects),
    )
