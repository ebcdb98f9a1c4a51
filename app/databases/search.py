"""Pages of the databases that match filters, whatever the filters and however many databases there are.

Each filter has an index that holds a team's databases with one value in the order of lists. A search walks one of them
and leaves out what doesn't match the other filters, which is quick when many match, or when the walk is short. Which
filter is so can't be known beforehand. So the indexes are walked in turn, each a little way; if none of them filled the
page or came to its end, each is walked further. That costs a few times what the best of them costs, and never more than
a fixed number of rows. The order of an index is such that no other one has it: no plan may walk another.
"""

from collections.abc import Iterator, Sequence
from uuid import UUID

from app.core.errors import SearchTooWide
from app.databases.filters import DatabaseFilters, conditions
from app.databases.records import DatabaseRecord
from app.store.session import fetch_all

STEPS = (200, 2_000, 20_000, 100_000)
"""How many rows of one list are looked at: at first, and each time that this wasn't enough. The first is more than a
page."""
_NAMES = dict(zip(STEPS, (12_000, 20_000, 200_000, 1_000_000), strict=True))
"""How many names are looked at in the place of a step's rows, where nothing else is asked for. Rows cost ten times as
much; at first, what all newest databases show costs more than what the names of most teams do."""
_ENTRIES_OF_A_ROW = 10
"""So many entries of the index of names cost what one row does."""
_MOST_ROWS = 250_000
"""That one search looks at altogether: a quarter of a second."""
_NOTHING = ("",)


class _Found(DatabaseRecord, frozen=True, kw_only=True):
    beyond: bool
    """Of one that says only that its list goes on from there."""


async def search(
    team_ids: list[int], filters: DatabaseFilters, *, after: UUID | None, limit: int
) -> list[DatabaseRecord]:
    """These teams' databases that match, newest first, from the one that follows `after` on; none when that is not
    theirs. Raises `SearchTooWide` when that can't be said without looking at too many."""
    rows = 0
    for step in STEPS:
        for walk, wanted in _walks(filters):
            looked_at = _NAMES[step] // _ENTRIES_OF_A_ROW if walk == "name alone" else step
            rows += looked_at * len(wanted) * len(team_ids)
            if rows > _MOST_ROWS:
                raise SearchTooWide
            statement = STATEMENTS[walk, step]
            found = await fetch_all(_Found, statement, team_ids, after, list(wanted), limit, *filters.values)
            # Those behind the first list that goes on beyond its step may not be the next ones.
            known = next((index for index, one in enumerate(found) if one.beyond), len(found))
            if known == limit or known == len(found):
                return list(found[:known])
    raise SearchTooWide


def _walks(filters: DatabaseFilters) -> Iterator[tuple[str, Sequence[str]]]:
    """The lists to walk, the likely shortest first, each with the values of it that are wanted."""
    alone = filters == DatabaseFilters(name=filters.name)
    if filters.name is not None:
        yield "name alone" if alone else "name", _NOTHING
    if alone:
        # Many may begin like that.
        yield "all", _NOTHING
    for label in filters.labels:
        yield "label", (label,)
    for column, values in (
        ("status", filters.statuses),
        ("region", filters.regions),
        ("plan", filters.plans),
        ("engine", filters.engines),
    ):
        if values:
            yield column, values


_BEFORE = """(
    SELECT CASE WHEN $2::uuid IS NULL THEN 9223372036854775807
                ELSE (SELECT position FROM databases WHERE uuid = $2 AND team_id = any($1)) END
)"""
_OF_TEAM = "team_id = mine.team_id AND status <> 'deleted'"

# In the order of lists.
_BY_VALUE = f"""
SELECT d.*, position AS rank, row_number() OVER (ORDER BY position DESC) AS place
FROM databases d WHERE {_OF_TEAM} AND {{column}} = wanted.value AND position < {_BEFORE}
ORDER BY position DESC LIMIT {{step}} + 1
"""  # noqa: S608 - our own words, as below
_ALL = f"""
SELECT d.*, position AS rank, -position AS turn, row_number() OVER (ORDER BY -position) AS place
FROM databases d WHERE {_OF_TEAM} AND -position > -{_BEFORE}
ORDER BY -position LIMIT {{step}} + 1
"""  # noqa: S608
# Without the subquery, a plan may join with all databases.
_BY_LABEL = f"""
SELECT d.*, l.position AS rank, l.place
FROM (
    SELECT database_id, position, row_number() OVER (ORDER BY position DESC) AS place
    FROM database_labels WHERE team_id = mine.team_id AND label = wanted.value AND position < {_BEFORE}
    ORDER BY position DESC LIMIT {{step}} + 1
) l CROSS JOIN LATERAL (SELECT * FROM databases WHERE id = l.database_id OFFSET 0) d
"""  # noqa: S608
# In the order of names, so that the page is only known when all of them were seen: whether there are more than the step
# is looked at first. The index alone says that much, and where they are in lists, so that rows are read for the page
# only. To number them would take four times as long. "~" sorts behind all that a name may hold.
_NAMED = f"""
SELECT position FROM databases WHERE {_OF_TEAM} AND name COLLATE "C" >= $5 AND name COLLATE "C" < $5 || '~'
ORDER BY name COLLATE "C"
"""  # noqa: S608
_BY_NAME = f"""
SELECT d.*, n.rank, n.place
FROM (
    WITH more AS MATERIALIZED ({_NAMED} OFFSET {{step}} LIMIT 1)
    SELECT position, 9223372036854775807 AS rank, {{step}} + 1 AS place FROM more
    UNION ALL
    (
        SELECT position, position, 0 FROM ({_NAMED} LIMIT {{step}}) e
        WHERE position < {_BEFORE} AND NOT EXISTS (SELECT FROM more) ORDER BY position DESC {{most}}
    )
) n CROSS JOIN LATERAL (SELECT * FROM databases WHERE {_OF_TEAM} AND -position = -n.position OFFSET 0) d
"""  # noqa: S608
_SHOWN = "SELECT d.*, d.place > {step} AS beyond, t.name AS team_name, h.host, h.port, h.tls, h.tls_ca"
_LISTS = f"""
FROM unnest($1::bigint[]) AS mine (team_id) CROSS JOIN unnest($3::text[]) AS wanted (value)
CROSS JOIN LATERAL (
    SELECT * FROM ({{walk}}) d WHERE d.place > {{step}} OR ({conditions(5)}) ORDER BY {{order}} LIMIT $4
) d
"""  # noqa: S608
_JOINED = "JOIN teams t ON t.id = d.team_id JOIN engine_hosts h ON h.id = d.host_id ORDER BY d.rank DESC LIMIT $4"


def _statement(walk: str, step: int, order: str = "d.rank DESC", **words: str) -> str:
    listed = _LISTS.format(walk=walk.format(step=step, **words), step=step, order=order)
    return f"{_SHOWN.format(step=step)}{listed}{_JOINED}"


STATEMENTS = {
    (name, step): statement
    for step in STEPS
    for name, statement in (
        ("name", _statement(_BY_NAME, step, most="")),
        # Nothing else has to match: the page is the first of them.
        ("name alone", _statement(_BY_NAME, _NAMES[step], most="LIMIT $4")),
        ("label", _statement(_BY_LABEL, step)),
        ("all", _statement(_ALL, step, order="d.turn")),
        *((column, _statement(_BY_VALUE, step, column=column)) for column in ("status", "region", "plan", "engine")),
    )
}
"""By the list that is walked, and the step."""
