"""What the model learns about SQL that failed: that a name or the syntax was wrong, and which of its own words.

An engine's message may quote data, and a tenant's function may raise any error with any text. So no message is passed
on: only a phrase of ours, and of the message those words that the model itself wrote.
"""

import re
from collections.abc import Mapping

_QUOTED = re.compile(r"\"([^\"]{1,80})\"|'([^']{1,80})'|`([^`]{1,80})`")
UNREADABLE = "it can't be parsed as one statement"


def problem(phrases: Mapping[str, str], code: str | None, message: str, sql: str) -> str | None:
    """A phrase for the model, or None for an error that is about something else than names and syntax. `phrases` are
    the dialect's."""
    phrase = phrases.get(code or "")
    if phrase is None:
        return None
    words = [part for match in _QUOTED.findall(message) for part in match if part and part in sql]
    return f"{phrase} ({', '.join(dict.fromkeys(words))})" if words else phrase
