"""What the runs found, kept from the first that saw it to the last."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

import msgspec

from app.reconcile.report import Violation
from app.store.session import fetch, fetch_all, transaction

Marks = Mapping[str, str]
"""The markers of orphans, by name. An orphan with another marker is another one, and seen for the first time."""


class _Orphan(msgspec.Struct, frozen=True):
    subject: str
    mark: str


_WRITE = """
INSERT INTO findings (host_id, rule, subject, mark, detail)
SELECT $1::bigint, * FROM unnest($2::text[], $3::text[], $4::text[], $5::text[])
ON CONFLICT (rule, subject, mark, coalesce(host_id, 0))
DO UPDATE SET detail = excluded.detail, last_seen_at = now()
"""


async def write(host_id: int | None, violations: Sequence[Violation], marks: Marks, *, complete: bool = True) -> None:
    """What one run found on that host, or in our own records. What it didn't find is over, where the run was
    `complete`: a host that doesn't answer tells nothing of what is on it."""
    unique = {(one.rule, one.subject): one for one in violations}
    rows = [(one.rule, one.subject, marks.get(one.subject, ""), one.detail) for one in unique.values()]
    async with transaction():
        await fetch(_WRITE, host_id, *([row[column] for row in rows] for column in range(4)))
        if complete:
            await fetch(
                "DELETE FROM findings WHERE host_id IS NOT DISTINCT FROM $1::bigint AND last_seen_at < now()", host_id
            )


async def old(host_id: int, rule: str, age: timedelta) -> set[tuple[str, str]]:
    """Subject and mark of what was first seen on that host so long ago, and in every run since."""
    rows = await fetch_all(
        _Orphan,
        "SELECT subject, mark FROM findings WHERE host_id = $1 AND rule = $2 AND first_seen_at <= now() - $3::interval",
        host_id,
        rule,
        age,
    )
    return {(row.subject, row.mark) for row in rows}
