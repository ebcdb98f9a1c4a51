"""A database's schema as lines of a prompt: names, types and comments, as much as fits, and nothing of the rows."""

import json
import re
from collections.abc import Iterable, Sequence

from app.engines.querying import ColumnInfo, TableInfo

MOST_CHARACTERS = 24_000
"""Some 8,000 tokens. The tables of a larger schema are ranked by the question."""
_MAX_COMMENT = 200
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*\Z")
_WORD = re.compile(r"[^\W_]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]+")


def schema_lines(tables: Sequence[TableInfo], question: str, quote: str) -> list[str]:
    """One line a table. Where not all have room, those that fit the question come first. `quote` is the engine's mark
    around names."""
    lines = {table.key: _line(table, quote) for table in tables}
    if sum(map(len, lines.values())) <= MOST_CHARACTERS:
        return list(lines.values())
    chosen, left = [], MOST_CHARACTERS
    for table in _ranked(tables, question):
        line = lines[table.key]
        if len(line) > left:
            # The name alone says that there is more.
            line = f"{_name(table, quote)} (columns left out)"
        if len(line) > left:
            break
        chosen.append(line)
        left -= len(line)
    return chosen


def _ranked(tables: Sequence[TableInfo], question: str) -> Iterable[TableInfo]:
    """The tables, ranked by the words that they share with the question, and by those of tables that they refer to or
    are referred to by."""
    asked = set(_stems(question))
    scores = {table.key: _score(table, asked) for table in tables}
    linked = dict(scores)
    for table in tables:
        for reference in table.references:
            if reference.table in scores:
                linked[table.key] += scores[reference.table] / 2
                linked[reference.table] += scores[table.key] / 2
    return sorted(tables, key=lambda table: -linked[table.key])


def _score(table: TableInfo, asked: set[str]) -> float:
    own = len(asked & set(_stems(f"{table.name} {table.comment or ''}")))
    columns = len(asked & {stem for c in table.columns for stem in _stems(f"{c.name} {c.comment or ''}")})
    return 3.0 * own + columns


def _stems(text: str) -> list[str]:
    return [word.rstrip("s") for word in _WORD.findall(text.lower()) if len(word) > 2]


def _line(table: TableInfo, quote: str) -> str:
    parts = [_column(column, quote) for column in table.columns]
    if table.primary_key:
        parts.append(f"PRIMARY KEY ({_names(table.primary_key, quote)})")
    for reference in table.references:
        target = _qualified(*reference.table, quote)
        parts.append(
            f"FOREIGN KEY ({_names(reference.columns, quote)}) REFERENCES {target} "
            f"({_names(reference.target_columns, quote)})"
        )
    kind = "VIEW " if table.is_view else ""
    return f"{kind}{_name(table, quote)} ({', '.join(parts)}){_comment(table.comment)}"


def _column(column: ColumnInfo, quote: str) -> str:
    required = " NOT NULL" if column.required else ""
    return f"{_quoted(column.name, quote)} {_clean(column.type)}{required}{_comment(column.comment)}"


def _name(table: TableInfo, quote: str) -> str:
    return _qualified(table.schema, table.name, quote)


def _qualified(schema: str, name: str, quote: str) -> str:
    inside = _quoted(name, quote)
    return inside if schema in ("", "public") else f"{_quoted(schema, quote)}.{inside}"


def _names(names: Iterable[str], quote: str) -> str:
    return ", ".join(_quoted(name, quote) for name in names)


def _quoted(name: str, quote: str) -> str:
    """Always on one line. A name with control characters can't be asked about."""
    clean = _clean(name)
    return clean if _PLAIN.match(clean) else quote + clean.replace(quote, quote * 2) + quote


def _comment(comment: str | None) -> str:
    """The comment as a JSON string: what it quotes stays inside the quotes."""
    return f" /* {json.dumps(_clean(comment)[:_MAX_COMMENT], ensure_ascii=False)} */" if comment else ""


def _clean(text: str) -> str:
    return _CONTROL.sub(" ", text)[:1000]
