"""The kind of each MySQL statement and the object it is about, read from its leading words."""

from app.dialects.analysis import StatementSummary
from app.dialects.mysql.scripts.definer import skip_definer
from app.dialects.mysql.scripts.reader import Reader

OBJECTS = frozenset({"table", "view", "index", "procedure", "function", "trigger", "sequence"})
_INDEX_KINDS = frozenset({"unique", "fulltext", "spatial", "online", "offline"})
_SELECTING = frozenset({"select", "with", "values", "table", "("})
_PLAIN = frozenset({"do", "show", "describe", "desc", "explain"})
_UPKEEP = frozenset({"analyze", "optimize", "check", "repair", "checksum"})
_MODIFIERS = frozenset({"low_priority", "delayed", "high_priority", "ignore", "quick", "into", "from"})


def describe(reader: Reader) -> StatementSummary | None:
    """The kind of a statement and its object; None for a statement that no blueprint may hold. Leaves the reader after
    the name."""
    verb = reader.word()
    reader.at += 1
    if verb == "create":
        return _create(reader)
    if verb in ("alter", "drop"):
        return _alter_or_drop(verb, reader)
    if verb in ("rename", "truncate"):
        if reader.take_any(frozenset({"table", "tables"})) is None and verb == "rename":
            return None
        kind = "RENAME TABLE" if verb == "rename" else "TRUNCATE"
        return StatementSummary(kind, _name(reader), "table")
    if verb in ("insert", "replace", "update", "delete"):
        while reader.take_any(_MODIFIERS):
            pass
        return StatementSummary(verb.upper(), _name(reader), "table")
    if verb in _SELECTING:
        return StatementSummary("SELECT")
    if verb == "call":
        return StatementSummary("CALL", _name(reader), "procedure")
    if verb == "set":
        return StatementSummary("SET")
    if verb in _UPKEEP:
        reader.take_any(frozenset({"local", "no_write_to_binlog"}))
        if not reader.take_any(frozenset({"table", "tables"})):
            return None
        return StatementSummary(f"{verb.upper()} TABLE", _name(reader), "table")
    return StatementSummary(verb.upper()) if verb in _PLAIN else None


def _create(reader: Reader) -> StatementSummary | None:
    reader.take("or", "replace")
    temporary = reader.take("temporary")
    if reader.take("algorithm", "="):
        reader.at += 1
    skip_definer(reader)
    if reader.take("sql", "security"):
        reader.at += 1
    reader.take("aggregate")
    while reader.take_any(_INDEX_KINDS):
        pass
    what = reader.take_any(OBJECTS)
    if what is None:
        return None
    kind = f"CREATE {'TEMPORARY ' if temporary else ''}{what.upper()}"
    return StatementSummary(kind, _name(reader), what, True)


def _alter_or_drop(verb: str, reader: Reader) -> StatementSummary | None:
    if verb == "alter":
        reader.take("online")
        reader.take("ignore")
        if reader.take("algorithm", "="):
            reader.at += 1
        skip_definer(reader)
        if reader.take("sql", "security"):
            reader.at += 1
    reader.take("temporary")
    what = reader.take_any(OBJECTS | {"tables"})
    if what is None:
        return None
    what = "table" if what == "tables" else what
    return StatementSummary(f"{verb.upper()} {what.upper()}", _name(reader), what)


def _name(reader: Reader) -> str | None:
    if reader.take("if"):
        reader.take("not")
        reader.take("exists")
    return reader.take_name()
