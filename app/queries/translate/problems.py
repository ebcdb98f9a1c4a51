"""What the model is told of SQL that failed: that a name or the syntax was wrong, and which of its own words.

An engine's message may quote data, and a tenant's function may raise any error with any text. So no message is passed
on: only a phrase of ours, and of the message those words that the model itself wrote.
"""

import re

_PHRASES = {
    # PostgreSQL
    "42601": "a syntax error",
    "42703": "a column that doesn't exist",
    "42P01": "a table that doesn't exist",
    "42883": "a function or operator that doesn't exist for these types",
    "42702": "an ambiguous column",
    "42803": "a column that is neither grouped nor aggregated",
    "42804": "types that don't match",
    "3F000": "a schema that doesn't exist",
    "42704": "a type or object that doesn't exist",
    # MySQL and MariaDB
    "1064": "a syntax error",
    "1054": "a column that doesn't exist",
    "1146": "a table that doesn't exist",
    "1305": "a function that doesn't exist",
    "1052": "an ambiguous column",
    "1055": "a column that is neither grouped nor aggregated",
    "1140": "a column that is neither grouped nor aggregated",
}
_QUOTED = re.compile(r"\"([^\"]{1,80})\"|'([^']{1,80})'|`([^`]{1,80})`")
UNREADABLE = "it can't be parsed as one statement"


def problem(code: str | None, message: str, sql: str) -> str | None:
    """A phrase for the model, or None for an error that is about something else than names and syntax."""
    phrase = _PHRASES.get(code or "")
    if phrase is None:
        return None
    words = [part for match in _QUOTED.findall(message) for part in match if part and part in sql]
    return f"{phrase} ({', '.join(dict.fromkeys(words))})" if words else phrase
