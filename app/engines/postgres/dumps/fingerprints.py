"""What the objects of a database hold, read by statements in which nothing of a tenant's takes part.

A row becomes text by `concat`, which calls the output function of each column's type: PostgreSQL's own, because only a
superuser makes base types. A cast to text could be a function of the tenant's. `record_out` does the same, but takes
twice as long because it quotes. Which columns are null is written separately. Columns are in the order of their names,
and generated ones are left out, as they are from a dump. Rows are added up, so that their order doesn't matter.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from app.engines.dumping import Content, ContentKind
from app.engines.postgres.quoting import quote_name

SESSION_SETTINGS = {
    "search_path": "pg_catalog",
    "client_encoding": "UTF8",
    "datestyle": "ISO, YMD",
    "intervalstyle": "postgres",
    "timezone": "UTC",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "xmlbinary": "base64",
    "lc_monetary": "C",
    "quote_all_identifiers": "off",
    # An error in place of rows that row level security would leave out.
    "row_security": "off",
    "jit": "off",
    "max_parallel_workers_per_gather": "0",
    "lock_timeout": "5s",
    "idle_in_transaction_session_timeout": "0",
    "tcp_keepalives_idle": "60",
    "application_name": "headwater",
}
"""Everything that the output of a built-in type depends on, among others."""
MOST_NAME = 1000
_SEPARATOR = "\x1f"
_ARGUMENTS = 90

# Not what belongs to an extension, nor ours. The `name`s sort by their bytes.
TABLES = """
SELECT c.oid, n.nspname::text AS schema, c.relname::text AS name, c.relkind = 'r' AS has_rows,
       c.relforcerowsecurity AND c.relrowsecurity AS secured
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND c.relpersistence <> 't' AND NOT starts_with(n.nspname, 'pg_')
  AND n.nspname <> 'information_schema' AND n.nspname <> $1
  AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid
                  AND d.deptype = 'e')
ORDER BY n.nspname, c.relname LIMIT $2
"""
# A part of an extension is in no dump, nor are its rows. Whoever has an extension may add what is its own to it; the
# parts that the extension's script makes are the first superuser's, whose ownership is not recorded. Where the script
# asks for no superuser they belong to who ran it: there only tables are refused, which may have rows.
ADDED_TO_EXTENSIONS = """
SELECT pg_describe_object(d.classid, d.objid, 0) AS part, quote_ident(x.extname) AS extension
FROM pg_depend d JOIN pg_extension x ON d.refclassid = 'pg_extension'::regclass AND x.oid = d.refobjid
JOIN pg_shdepend o ON o.classid = d.classid AND o.objid = d.objid AND o.deptype = 'o'
     AND o.refclassid = 'pg_authid'::regclass
     AND o.dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
WHERE d.deptype = 'e' AND pg_has_role(o.refobjid, 'MEMBER') AND (
    EXISTS (SELECT FROM pg_class c
            WHERE d.classid = 'pg_class'::regclass AND c.oid = d.objid AND c.relkind IN ('r', 'p'))
    OR coalesce((SELECT v.superuser FROM pg_available_extension_versions v
                 WHERE v.name = x.extname AND v.version = x.extversion), true)
) LIMIT 1
"""
# Of some tables at a time: together they may have millions. A table that is locked has as many blocks now as it had at
# an earlier moment, or more.
COLUMNS = """
SELECT attrelid AS oid, array_agg(attname::text ORDER BY attname) AS columns,
       pg_relation_size(attrelid) / current_setting('block_size')::int AS blocks FROM pg_attribute
WHERE attrelid = ANY($1::oid[]) AND attnum > 0 AND NOT attisdropped AND attgenerated = '' GROUP BY attrelid
"""
SEQUENCES = """
SELECT n.nspname::text AS schema, c.relname::text AS name
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'S' AND c.relpersistence <> 't' AND NOT starts_with(n.nspname, 'pg_')
  AND n.nspname <> 'information_schema' AND n.nspname <> $1
  AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid
                  AND d.deptype = 'e')
ORDER BY n.nspname, c.relname LIMIT $2
"""
# In pieces: an object may have terabytes.
_PIECE = 2**20
LARGE_OBJECTS = f"""
WITH batch AS MATERIALIZED (
    SELECT oid FROM pg_largeobject_metadata WHERE oid > $1::bigint::oid ORDER BY oid LIMIT $2
), opened AS MATERIALIZED (
    SELECT oid, lo_open(oid, 262144) AS fd FROM batch
), sized AS MATERIALIZED (
    SELECT oid, fd, lo_lseek64(fd, 0, 2) AS size FROM opened
), closed AS MATERIALIZED (
    SELECT oid, size, lo_close(fd) AS fd FROM sized
)
SELECT count(DISTINCT oid) AS rows, max(oid::bigint) AS reached,
       sum(hashtextextended(piece COLLATE "C", 1)) AS one, sum(hashtextextended(piece COLLATE "C", 2)) AS two
FROM (
    SELECT oid, oid::text || '/' || size || '/' || n || '/' || encode(sha256(lo_get(oid, n, {_PIECE})), 'hex') AS piece
    FROM closed CROSS JOIN LATERAL generate_series(0, greatest(size - 1, 0), {_PIECE}) AS n
    OFFSET 0
) pieces
"""  # noqa: S608  constants
# What has no rows, by its kind: how many there are, what they are called, and what of them is stored as it was written.
# Expressions and queries are no part, because the server writes some of them in another way once they were read again.
# Nor are rights and policies of users, who are not everywhere, and of the owner, which a frozen one lacks.
OTHERS = """
WITH schemas AS (
    SELECT oid, nspname::text AS schema FROM pg_namespace
    WHERE NOT starts_with(nspname, 'pg_') AND nspname <> 'information_schema' AND nspname <> $1
), members AS (
    SELECT classid, objid FROM pg_depend WHERE deptype = 'e'
), everywhere AS (
    SELECT oid, CASE rolname WHEN current_database() THEN 'owner' ELSE rolname END COLLATE "C" AS who FROM pg_roles
    WHERE rolname = current_database() OR starts_with(rolname, 'pg_')
    UNION ALL SELECT 0::oid, 'everybody'
), rights AS (
    SELECT s.schema || '.' || c.relname AS name, c.relowner AS owner, c.relacl AS acl
    FROM pg_class c JOIN schemas s ON s.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'S') AND c.relpersistence <> 't'
      AND NOT EXISTS (SELECT FROM members m WHERE m.classid = 'pg_class'::regclass AND m.objid = c.oid)
    UNION ALL
    SELECT s.schema || '.' || c.relname || '.' || a.attname, c.relowner, a.attacl
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN schemas s ON s.oid = c.relnamespace
    WHERE a.attacl IS NOT NULL AND NOT a.attisdropped AND c.relpersistence <> 't'
      AND NOT EXISTS (SELECT FROM members m WHERE m.classid = 'pg_class'::regclass AND m.objid = c.oid)
    UNION ALL
    SELECT s.schema || '.' || p.proname || '(' || oidvectortypes(p.proargtypes) || ')', p.proowner,
           coalesce(p.proacl, acldefault('f', p.proowner))
    FROM pg_proc p JOIN schemas s ON s.oid = p.pronamespace
    WHERE NOT EXISTS (SELECT FROM members m WHERE m.classid = 'pg_proc'::regclass AND m.objid = p.oid)
    UNION ALL
    SELECT s.schema, n.nspowner, n.nspacl FROM schemas s JOIN pg_namespace n ON n.oid = s.oid WHERE s.schema <> 'public'
), objects AS (
    SELECT 'schemas' AS kind, schema AS name FROM schemas WHERE schema <> 'public'
    UNION ALL
    SELECT CASE c.relkind WHEN 'v' THEN 'views' WHEN 'm' THEN 'materialized views' WHEN 'c' THEN 'types'
                          WHEN 'p' THEN 'partitioned tables' WHEN 'i' THEN 'indexes' WHEN 'I' THEN 'indexes' END,
           concat_ws(' ', s.schema || '.' || c.relname,
                     CASE WHEN c.relkind = 'm' AND NOT c.relispopulated THEN 'empty' END,
                     CASE WHEN c.relkind IN ('v', 'm') THEN c.reloptions::text END,
                     CASE WHEN c.relkind IN ('v', 'm', 'c') THEN (
                         SELECT string_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod), ', '
                                           ORDER BY a.attnum)
                         FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
                     ) END)
    FROM pg_class c JOIN schemas s ON s.oid = c.relnamespace LEFT JOIN pg_index i ON i.indexrelid = c.oid
    WHERE c.relkind IN ('v', 'm', 'c', 'p', 'i', 'I') AND c.relpersistence <> 't'
      AND (i.indexrelid IS NULL OR i.indisvalid AND c.relkind = 'i')
      AND NOT EXISTS (SELECT FROM members m WHERE m.classid = 'pg_class'::regclass AND m.objid = c.oid)
    UNION ALL
    SELECT 'routines', concat_ws(' ', s.schema || '.' || p.proname || '(' || oidvectortypes(p.proargtypes) || ')',
                                 l.lanname, p.prokind, format_type(p.prorettype, NULL), p.proretset, p.proargmodes,
                                 p.proargnames, p.provolatile, p.proisstrict, p.prosecdef, p.proleakproof,
                                 p.proparallel, p.proconfig, p.prosrc, p.probin)
    FROM pg_proc p JOIN schemas s ON s.oid = p.pronamespace JOIN pg_language l ON l.oid = p.prolang
    WHERE NOT EXISTS (SELECT FROM members m WHERE m.classid = 'pg_proc'::regclass AND m.objid = p.oid)
    UNION ALL
    SELECT 'types', s.schema || '.' || t.typname || ' ' || t.typtype::text
    FROM pg_type t JOIN schemas s ON s.oid = t.typnamespace
    WHERE t.typtype IN ('d', 'e', 'r')
      AND NOT EXISTS (SELECT FROM members m WHERE m.classid = 'pg_type'::regclass AND m.objid = t.oid)
    UNION ALL
    SELECT 'triggers', concat_ws(' ', s.schema || '.' || c.relname || '.' || g.tgname, g.tgenabled, g.tgtype, p.proname,
                                 encode(g.tgargs, 'hex'), g.tgdeferrable, g.tginitdeferred, g.tgoldtable, g.tgnewtable)
    FROM pg_trigger g JOIN pg_class c ON c.oid = g.tgrelid JOIN schemas s ON s.oid = c.relnamespace
    JOIN pg_proc p ON p.oid = g.tgfoid
    WHERE NOT g.tgisinternal AND c.relpersistence <> 't'
    UNION ALL
    SELECT 'constraints', s.schema || '.' || c.relname || '.' || k.conname || ' ' || k.contype::text || ' '
           || k.convalidated
    FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN schemas s ON s.oid = c.relnamespace
    WHERE k.contype IN ('c', 'f', 'p', 'u', 'x') AND c.relpersistence <> 't' AND k.conparentid = 0
    UNION ALL
    SELECT 'policies', s.schema || '.' || c.relname || '.' || p.polname || ' ' || p.polcmd::text
           || ' ' || p.polpermissive || ' ' || (p.polqual IS NULL) || ' ' || (p.polwithcheck IS NULL) || ' ' || (
               SELECT string_agg(w.who, ', ' ORDER BY w.who)
               FROM unnest(p.polroles) AS r (oid) JOIN everywhere w ON w.oid = r.oid
           )
    FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid JOIN schemas s ON s.oid = c.relnamespace
    -- A policy for users alone is there where they are.
    WHERE EXISTS (SELECT FROM unnest(p.polroles) AS r (oid) JOIN everywhere w ON w.oid = r.oid)
    UNION ALL
    SELECT 'row level security', s.schema || '.' || c.relname || ' ' || c.relforcerowsecurity
    FROM pg_class c JOIN schemas s ON s.oid = c.relnamespace WHERE c.relrowsecurity
    UNION ALL
    -- Later servers have one more, which an earlier one's "all" comes to cover.
    SELECT 'rights', concat_ws(' ', r.name, w.who, a.privilege_type, a.is_grantable)
    FROM rights r CROSS JOIN LATERAL aclexplode(r.acl) a JOIN everywhere w ON w.oid = a.grantee
    WHERE a.grantee <> r.owner AND a.grantor = r.owner AND a.privilege_type <> 'MAINTAIN'
    UNION ALL SELECT 'extensions', e.extname::text FROM pg_extension e JOIN schemas s ON s.oid = e.extnamespace
)
SELECT kind, count(*) AS rows, encode(sha256(convert_to(string_agg(name, E'\\n' ORDER BY name COLLATE "C"), 'UTF8')),
                                      'hex') AS fingerprint
FROM objects GROUP BY kind ORDER BY kind
"""


class Table(msgspec.Struct, frozen=True, kw_only=True):
    oid: int
    schema: str
    name: str
    has_rows: bool
    """It holds rows itself; a partitioned one doesn't."""
    secured: bool
    """Row level security holds for its owner too."""

    @property
    def qualified(self) -> str:
        return f"{quote_name(self.schema)}.{quote_name(self.name)}"


def sums_in(copied: bytes) -> Iterator[tuple[int, int, int, int]]:
    """The rows of a statement of `fingerprint_of`, from the output of a COPY. For no rows there are no sums: they are
    0."""
    for line in copied.splitlines():
        number, rows, one, two = line.split(b"\t")
        yield int(number), int(rows), *((int(one), int(two)) if int(rows) else (0, 0))


class BlockRange(msgspec.Struct, frozen=True):
    """A part of a table, in the order of its file: from the block `start` up to the block `end`, or all that follow."""

    start: int
    end: int | None

    @property
    def condition(self) -> str:
        before = "" if self.end is None else f" AND r.ctid < '({self.end:d},0)'"
        return f"WHERE r.ctid >= '({self.start:d},0)'{before}"


class Sums:
    """The sums of a table that is read piece by piece. While no piece had rows, there is no sum."""

    def __init__(self) -> None:
        self.rows = 0
        self.one: int | None = None
        self.two: int | None = None

    def add(self, rows: int, one: int, two: int) -> None:
        if rows:
            self.rows, self.one, self.two = self.rows + rows, (self.one or 0) + one, (self.two or 0) + two


def fingerprint_of(
    tables: Sequence[Table], columns: Mapping[int, Sequence[str]], blocks: BlockRange | None = None
) -> str:
    """A statement with a row for each table: its number in the sequence, its rows, and two sums. `columns` has the
    names of the columns by the table's oid; tables without columns are left out of it. The statement is about all rows,
    or those in some `blocks`."""
    where = "" if blocks is None else blocks.condition
    return " UNION ALL ".join(
        _one(number, table, columns.get(table.oid, ()), where) for number, table in enumerate(tables)
    )


def _one(number: int, table: Table, names: Sequence[str], where: str) -> str:
    columns = [f"r.{quote_name(name)}" for name in names]
    values = [part for column in columns for part in (column, f"'{_SEPARATOR}'")]
    # Of a composite type, IS NULL would mean that all within are null.
    nulls = [f"{column} IS NOT DISTINCT FROM NULL" for column in columns]
    # OFFSET: or the text would be made once for each of the two.
    return f"""
    SELECT {number} AS number, count(*) AS rows, sum(hashtextextended(t COLLATE "C", 1)) AS one,
           sum(hashtextextended(t COLLATE "C", 2)) AS two
    FROM (SELECT {_concatenated([*values, *nulls])} AS t FROM ONLY {table.qualified} AS r {where} OFFSET 0) AS s
    """  # noqa: S608  names are quoted


def _concatenated(expressions: Sequence[str]) -> str:
    """An expression that makes one text of these, however many there are: a function takes a hundred arguments."""
    while len(expressions) > 1:
        expressions = [
            f"concat({', '.join(expressions[at : at + _ARGUMENTS])})" for at in range(0, len(expressions), _ARGUMENTS)
        ]
    return expressions[0] if expressions else "''"


def content(name: str, rows: int, *parts: object, kind: ContentKind = ContentKind.TABLE) -> Content:
    written = "\n".join(map(str, parts)).encode(errors="surrogateescape")
    return Content(name=name[:MOST_NAME], kind=kind, rows=rows, fingerprint=hashlib.sha256(written).hexdigest()[:32])


def table_content(table: Table, columns: Sequence[str], rows: int, one: object, two: object) -> Content:
    return content(table.qualified, rows, *columns, rows, one, two)


def sequence_content(schema: str, name: str, last: str, called: bool) -> Content:
    return content(f"{quote_name(schema)}.{quote_name(name)}", 1, last, called, kind=ContentKind.SEQUENCE)


def large_objects_content(rows: int, one: int, two: int) -> Content:
    return content("large objects", rows, rows, one, two, kind=ContentKind.LARGE_OBJECTS)


def other_content(kind: str, rows: int, fingerprint: str) -> Content:
    return content(kind, rows, rows, fingerprint, kind=ContentKind.OTHER)


def ordered(contents: Iterable[Content]) -> list[Content]:
    return sorted(contents, key=lambda one: (one.name, one.kind))
