"""MySQL's statements about the schema: SHOW, DESCRIBE and EXPLAIN, of the tenant's database alone.

A grammar of its own, which takes whole statements and nothing else: sqlglot reads far more forms of SHOW, and none of
DESCRIBE with a column. No WHERE, for an expression may call what it likes.
"""

import re
from functools import cache

from app.dialects.verdict import Refused
from app.dialects.word_lists import words

# Possessive: a name that could end anywhere, before another that may follow without a blank, is tried at each length.
_NAME = r"(?:`(?:[^`]|``)++`|[a-z_\u0080-\uffff][a-z0-9_$\u0080-\uffff]*+)"
_FROM = r"\s*(?:\b(?:FROM|IN)\b)\s*"
_DATABASE = rf"(?:{_FROM}(?P<database>{_NAME}))?"
_TABLE = rf"(?:(?P<schema>{_NAME})\s*\.\s*)?(?P<table>{_NAME})"
_TEXT = r"""(?:'(?:[^'\\]|''|\\.)*+'|"(?:[^"\\]|""|\\.)*+")"""
_LIKE = rf"(?:\s*\bLIKE\b\s*{_TEXT})?"
# ASCII alone: to the server a blank beyond it is part of a name.
_FLAGS = re.IGNORECASE | re.DOTALL | re.ASCII
_SHOWN = re.compile(r"SHOW\b", _FLAGS)
_FORMS = (
    rf"SHOW\s+(?:FULL\s+)?TABLES{_DATABASE}{_LIKE}",
    rf"SHOW\s+(?:FULL\s+)?(?:COLUMNS|FIELDS){_FROM}{_TABLE}{_DATABASE}{_LIKE}",
    rf"SHOW\s+(?:INDEX|INDEXES|KEYS){_FROM}{_TABLE}{_DATABASE}",
    rf"SHOW\s+CREATE\s+(?:TABLE|VIEW)\b\s*{_TABLE}",
)
_DESCRIBED = rf"(?:DESCRIBE|DESC|EXPLAIN)\b\s*{_TABLE}(?:\s*(?:{_NAME}|{_TEXT}))?"
_EXPLAINED = re.compile(
    r"(?:DESCRIBE|DESC|EXPLAIN)\b\s*(?:FORMAT\s*=\s*(?:TRADITIONAL|JSON|TREE)\b)?(?P<inner>.+)", _FLAGS
)
_STATEMENTS = words("analyze delete extended for format insert into partitions replace select table update values with")
"""Words that begin another form of EXPLAIN, where no quotes are around them."""


def is_schema_query(text: str, database: str) -> bool:
    """Whether this statement, without comments, is one of these forms. Raises `Refused` for a SHOW of anything else,
    and for one that names another database."""
    if _SHOWN.match(text):
        found = next((match for form in _FORMS if (match := _compiled(form).fullmatch(text))), None)
        if found is None:
            raise Refused(
                "SHOW is for the own database's tables, columns, indexes and their definitions, without a WHERE."
            )
    else:
        found = _compiled(_DESCRIBED).fullmatch(text)
        if found is None or (found["schema"] or found["table"]).lower() in _STATEMENTS:
            return False
    for name in (found.groupdict().get("database"), found.groupdict().get("schema")):
        if name is not None and _plain(name) != database:
            raise Refused("Another database may not be named.")
    return True


@cache
def _compiled(form: str) -> re.Pattern[str]:
    """Compiles a form at its first use: all forms together take longer to compile than the rest of this package to
    import."""
    return re.compile(form, _FLAGS)


def explained(text: str) -> str | None:
    """The statement that this one asks the plan of: it is judged as if it stood alone. None for any other statement.
    Other options of EXPLAIN stay in the result, which begins no statement then."""
    match = _EXPLAINED.fullmatch(text)
    return match["inner"].strip() if match else None


def _plain(name: str) -> str:
    return (name[1:-1].replace("``", "`") if name.startswith("`") else name).lower()
