"""Pages of the databases that match filters, whatever the filters and however many databases there are.

Each filter has an index that holds a team's databases with one value in the order of lists. A search walks one of them
and leaves out what doesn't match the other filters. Where there are several it walks the one whose next rows reach back
furthest, as the indexes alone say: whatever as many rows of another list would show is among them. If then the page
isn't filled and the list isn't at its end, the search walks it further. That costs about what the best list costs, and
never more than a fixed number of rows. Each index has an order that no other one has: no plan may walk another.
"""

from collections.abc import Iterator, Sequence
from uuid import UUID

import msgspec

from app.core.errors import SearchTooWide
from app.databases.filters import DatabaseFilters, conditions
from app.databases.records import COLUMNS, DatabaseRecord
from app.store.planning import planned_once
from app.store.session import fetch_all, fetch_value

STEPS = (200, 2_000, 20_000, 100_000)
"""How many rows of one list are looked at: at first, and each time that this wasn't enough. The first is more than a
page."""
NAMES = dict(zip(STEPS, (12_000, 20_000, 200_000, 1_000_000), strict=True))
"""How many names are looked at in the place of a step's rows, where nothing else is asked for."""
_ENTRIES_OF_A_ROW = 10
"""How many entries of an index cost as much as one row."""
_MOST_ROWS = 250_000
"""The most rows that one search looks at altogether: a quarter of a second."""
_COLUMNS = ("status", "engine", "region", "plan")
_NOTHING = ("",)


class Walk(msgspec.Struct, frozen=True):
    """A way through the databases: one list for each of the values."""

    name: str
    values: Sequence[str] = _NOTHING

    def rows(self, step: int) -> int:
        """How many rows of each team a step looks at, or as many as its entries cost."""
        return (NAMES[step] // _ENTRIES_OF_A_ROW if self.name == "name alone" else step) * len(self.values)


class _Found(DatabaseRecord, frozen=True, kw_only=True):
    beyond: bool
    """True for a row that says only that its list goes on from there."""


async def search(
    team_ids: list[int], filters: DatabaseFilters, *, after: UUID | None, limit: int
) -> list[DatabaseRecord]:
    """These teams' databases that match, newest first, from the one that follows `after` on; none when that is not
    theirs. Raises `SearchTooWide` when that can't be said without looking at too many rows."""
    rows, walks = 0, list(_walks(filters))
    for step in STEPS:
        if len(walks) > 1:
            rows = _counted(rows + sum(walk.rows(step) for walk in walks) * len(team_ids) // _ENTRIES_OF_A_ROW)
            furthest = await _furthest(walks, step, team_ids, after, filters)
        else:
            furthest = walks[0]
        for walk in _in_turn(furthest, step):
            rows = _counted(rows + walk.rows(step) * len(team_ids))
            statement = STATEMENTS[walk.name, step]
            found = await fetch_all(_Found, statement, team_ids, after, list(walk.values), limit, *filters.values)
            # Those behind the first list that goes on beyond its step may not be the next ones.
            known = next((index for index, one in enumerate(found) if one.beyond), len(found))
            if known == limit or known == len(found):
                return list(found[:known])
    raise SearchTooWide


def _counted(rows: int) -> int:
    if rows > _MOST_ROWS:
        raise SearchTooWide
    return rows


def _walks(filters: DatabaseFilters) -> Iterator[Walk]:
    """The lists that each have all databases that match."""
    if filters == DatabaseFilters(name=filters.name):
        yield Walk("name alone")
        return
    if filters.name is not None:
        yield Walk("name")
    for label in filters.labels:
        yield Walk("label", (label,))
    for column, values in (
        ("status", filters.statuses),
        ("region", filters.regions),
        ("plan", filters.plans),
        ("engine", filters.engines),
    ):
        if values:
            yield Walk(column, values)


def _in_turn(walk: Walk, step: int) -> tuple[Walk, ...]:
    """The lists to walk in this step. Many names may begin as asked: then the newest databases of all show them. The
    first step looks there already."""
    return (Walk("all"), walk) if walk.name == "name alone" and step > STEPS[0] else (walk,)


async def _furthest(
    walks: Sequence[Walk], step: int, team_ids: list[int], after: UUID | None, filters: DatabaseFilters
) -> Walk:
    """The walk whose rows of this step reach back furthest, or that ends before."""
    lists = [(place, walk.name, value) for place, walk in enumerate(walks) for value in walk.values]
    places, names, values = (list(column) for column in zip(*lists, strict=True))
    return walks[await fetch_value(int, REACHES[step], team_ids, after, places, names, filters.name, values) or 0]


_TEAMS = "unnest($1::bigint[]) AS mine (team_id)"
_MOST = "$4::bigint"
_BEFORE = """(
    SELECT CASE WHEN $2::uuid IS NULL THEN 9223372036854775807
                ELSE (SELECT position FROM databases WHERE uuid = $2::uuid AND team_id = any($1::bigint[])) END
)"""
_OF_TEAM = "team_id = mine.team_id AND status <> 'deleted'"

# In the order of lists. How many rows a LIMIT leaves is hidden from the planner: where it believes that there are fewer
# anyway, as in a team that is much larger than others, it would read all of them and sort.
_VALUED = f"""
FROM databases d WHERE {_OF_TEAM} AND {{column}} = wanted.value AND position < {_BEFORE} ORDER BY position DESC
"""
_LABELLED = f"""
FROM database_labels WHERE team_id = mine.team_id AND label = wanted.value AND position < {_BEFORE}
ORDER BY position DESC
"""
_BY_VALUE = f"""
SELECT d.*, position AS rank, row_number() OVER (ORDER BY position DESC) AS place {_VALUED} LIMIT (SELECT {{step}} + 1)
"""
_ALL = f"""
SELECT d.*, position AS rank, -position AS turn, row_number() OVER (ORDER BY -position) AS place
FROM databases d WHERE {_OF_TEAM} AND -position > -{_BEFORE}
ORDER BY -position LIMIT (SELECT {{step}} + 1)
"""  # noqa: S608 - our own words, as below
# Without the subquery, a plan may join with all databases.
_BY_LABEL = f"""
SELECT d.*, l.position AS rank, l.place
FROM (
    SELECT database_id, position, row_number() OVER (ORDER BY position DESC) AS place {_LABELLED}
    LIMIT (SELECT {{step}} + 1)
) l CROSS JOIN LATERAL (SELECT * FROM databases WHERE id = l.database_id OFFSET 0) d
"""  # noqa: S608
# In the order of names, so that the page is only known when all of them were seen. The index alone says where they are
# in lists, and rows are read for the page only. Backwards: where names count up, the newest come first, which sorts
# faster. "~" sorts behind all that a name may hold.
_NAMED = f"""
FROM databases WHERE {_OF_TEAM} AND name COLLATE "C" >= $5::text AND name COLLATE "C" < $5::text || '~'
ORDER BY name COLLATE "C" DESC
"""
# Behind the last name comes what stands for the end. Where it isn't reached within the limit, there are more; to number
# the entries, or to count them first, would take a second look at each. PostgreSQL appends in this order: no plan that
# works in parallel has a LIMIT below.
_END = 9223372036854775807
_NAMES = f"""
SELECT position FROM (
    (SELECT position {_NAMED} LIMIT {{many}}) UNION ALL SELECT {_END} LIMIT {{step}} + 1
) e
WHERE position < {_BEFORE} OR position = {_END} ORDER BY position DESC {{most}}
"""  # noqa: S608
_OF_NAMES = f"""
SELECT position, position AS rank, 0 AS place FROM names
WHERE position < {_END} AND EXISTS (SELECT FROM names WHERE position = {_END})
"""  # noqa: S608
# One that says that there are more. Any of the team's will do.
_BEYOND = f"""
(SELECT position, {_END} AS rank, {{step}} + 1 AS place FROM databases
 WHERE {_OF_TEAM} AND NOT EXISTS (SELECT FROM names WHERE position = {_END}) ORDER BY -position LIMIT 1)
"""  # noqa: S608
_ROWS_OF_NAMES = f"""
n CROSS JOIN LATERAL (SELECT * FROM databases WHERE {_OF_TEAM} AND -position = -n.position OFFSET 0) d
"""  # noqa: S608
_BY_NAME = f"""
SELECT d.*, n.rank, n.place
FROM (WITH names AS MATERIALIZED ({_NAMES}) {_OF_NAMES} UNION ALL {_BEYOND}) {_ROWS_OF_NAMES}
"""  # noqa: S608
# What many begin with is seen at once among the newest; then no name is looked at.
_SEEN = "(SELECT count(*) FROM newest)"
_BY_NAME_ALONE = f"""
SELECT d.*, n.rank, n.place
FROM (
    WITH newest AS MATERIALIZED (
        SELECT position FROM (
            SELECT position, name FROM databases WHERE {_OF_TEAM} AND -position > -{_BEFORE}
            ORDER BY -position LIMIT (SELECT {STEPS[0]})
        ) d WHERE starts_with(name, $5::text) LIMIT {_MOST}
    ), names AS MATERIALIZED ({_NAMES})
    SELECT position, position AS rank, 0 AS place FROM newest WHERE {_SEEN} = {_MOST}
    UNION ALL {_OF_NAMES} UNION ALL {_BEYOND}
) {_ROWS_OF_NAMES}
"""  # noqa: S608
_SHOWN = f"SELECT {COLUMNS}, d.place > {{step}} AS beyond, t.name AS team_name, h.host, h.port, h.tls, h.tls_ca"
_LISTS = f"""
FROM {_TEAMS} CROSS JOIN unnest($3::text[]) AS wanted (value)
CROSS JOIN LATERAL (
    SELECT * FROM ({{walk}}) d WHERE d.place > {{step}} OR ({conditions(5)}) ORDER BY {{order}} LIMIT {_MOST}
) d
"""  # noqa: S608
_JOINED = f"""
JOIN teams t ON t.id = d.team_id JOIN engine_hosts h ON h.id = d.host_id ORDER BY d.rank DESC LIMIT {_MOST}
"""


def _statement(walk: str, step: int, *, order: str = "d.rank DESC", **words: str) -> str:
    listed = _LISTS.format(walk=walk.format(step=step, **words), step=step, order=order)
    return planned_once(f"{_SHOWN.format(step=step)}{listed}{_JOINED}")


def _name_alone(step: int) -> str:
    """The statement where nothing else has to match: the page is the first of the rows, behind the one that says that
    they are all."""
    many = f"CASE WHEN {_SEEN} < {_MOST} THEN {step} + 1 ELSE 0 END"
    return _statement(_BY_NAME_ALONE, step, many=many, most=f"LIMIT {_MOST} + 1")


STATEMENTS = {
    (name, step): statement
    for step in STEPS
    for name, statement in (
        ("name", _statement(_BY_NAME, step, many=f"(SELECT {step} + 1)", most="")),
        ("name alone", _name_alone(NAMES[step])),
        ("label", _statement(_BY_LABEL, step)),
        ("all", _statement(_ALL, step, order="d.turn")),
        *((column, _statement(_BY_VALUE, step, column=column)) for column in _COLUMNS),
    )
}
"""The statements by the list that is walked, and the step."""

# The position of the row with which the next step begins, from an index alone.
_NEXT = "(SELECT position {list} OFFSET (SELECT {{step}}) LIMIT 1)"
_NEXT_OF_VALUES = " ".join(
    f"WHEN '{column}' THEN {_NEXT.format(list=_VALUED.format(column=column))}" for column in _COLUMNS
)
_REACH = f"""
SELECT one.place
FROM unnest($3::int[], $4::text[], $6::text[]) AS one (place, walk, value) CROSS JOIN {_TEAMS}
CROSS JOIN LATERAL (SELECT one.value) AS wanted (value)
CROSS JOIN LATERAL (
    SELECT CASE one.walk
        WHEN 'name' THEN (SELECT {_END} {_NAMED} OFFSET (SELECT {{step}}) LIMIT 1)
        WHEN 'label' THEN {_NEXT.format(list=_LABELLED)}
        {_NEXT_OF_VALUES}
    END
) AS list (next)
GROUP BY one.place ORDER BY max(coalesce(next, 0)), one.place LIMIT 1
"""  # noqa: S608
REACHES = {step: planned_once(_REACH.format(step=step)) for step in STEPS}
"""The statements by step. Each says which of several lists reaches back furthest in so many rows, by its place among
them."""
