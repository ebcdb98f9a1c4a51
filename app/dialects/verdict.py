"""What judging a question's SQL results in."""

import re
from enum import StrEnum

import msgspec

MOST_CHARACTERS = 16 * 1024
"""The most characters of the SQL for one question. A language model writes no more, unless it is made to."""

MOST_REASON = 1000
"""The most characters of a refusal, which may quote what it refuses."""


class SqlClass(StrEnum):
    """What the statements of one answer do, judged by parsing alone: `select` reads, `write` inserts, updates or
    deletes, `ddl_batch` changes the schema."""

    SELECT = "select"
    WRITE = "write"
    DDL_BATCH = "ddl_batch"


class AllowedSQL(msgspec.Struct, frozen=True, kw_only=True):
    """Allowed: these very texts are executed, in this order; more than one only where all change the schema."""

    sql_class: SqlClass
    statements: tuple[str, ...]


class Refused(Exception):
    """Not to be executed. `reason` is a sentence for whoever asked, `by` what refused it, for the metrics."""

    by = "statement"

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = recordable(reason[:MOST_REASON])


class Unreadable(Refused):
    """The parser doesn't understand it, so nobody knows what it would do."""

    by = "unreadable"


_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def recordable(text: str) -> str:
    """What a model wrote, as our database stores it and an answer carries it: the same, but for what `check_text`
    refuses. That is replaced and cut off."""
    return _UNSTORABLE.sub("\ufffd", text[:MOST_CHARACTERS])


def check_text(sql: str) -> None:
    """Raises `Refused` for what no parser and no server should be given."""
    if not sql.strip():
        raise Unreadable("There is no statement.")
    if len(sql) > MOST_CHARACTERS:
        raise Refused(f"The SQL is longer than {MOST_CHARACTERS} characters.")
    if "\x00" in sql:
        raise Refused("The SQL contains a NUL character.")
    try:
        sql.encode()
    except UnicodeEncodeError:
        raise Refused("The SQL contains characters that are no Unicode text.") from None
