"""What a model answered, however well it keeps to the form."""

import re
from typing import Any

import msgspec

KINDS = ("read", "write", "ddl")
SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["kind", "sql", "refusal"],
    "properties": {
        "kind": {"enum": [*KINDS, "none"]},
        "sql": {"type": ["string", "null"]},
        "refusal": {"type": ["string", "null"]},
    },
}
"""JSON Schema of a good answer."""

_FENCE = "```"
_BEGINS_LIKE_SQL = re.compile(
    r"\s*(SELECT|WITH|VALUES|TABLE|EXPLAIN|SHOW|DESCRIBE|DESC|INSERT|UPDATE|DELETE|MERGE|REPLACE|CREATE|ALTER)\b",
    re.IGNORECASE,
)
_MOST_REASON = 500
_MOST_CHARACTERS = 256 * 1024
"""Several times the longest SQL that is judged, escaped."""


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """`kind` is None where the model declared none. Without `sql`, `refusal` says why."""

    sql: str | None = None
    kind: str | None = None
    refusal: str = "The language model gave no SQL."


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """A reply, and what it cost."""

    reply: Reply
    prompt_tokens: int
    completion_tokens: int


def parse(text: str | None) -> Reply:
    """Reads a reply from the first of these that the text holds: JSON, JSON among words, a fenced block, bare SQL.
    Takes time in proportion to the text, whatever it holds."""
    text = (text or "").strip()
    if len(text) > _MOST_CHARACTERS:
        return Reply(refusal=f"The language model's answer is longer than {_MOST_CHARACTERS} characters.")
    blocks = _blocks(text)
    inner = text[text.find("{") : text.rfind("}") + 1]
    for candidate in (text, *(block for language, block in blocks if language in ("", "json")), inner):
        found = _from_json(candidate)
        if found is not None:
            return found
    if blocks and blocks[0][1].strip():
        return Reply(sql=blocks[0][1].strip())
    if _BEGINS_LIKE_SQL.match(text):
        return Reply(sql=text)
    return Reply(refusal="The language model's answer holds no SQL.") if text else Reply()


def _blocks(text: str) -> list[tuple[str, str]]:
    """What stands in fences, each with the language named on its first line."""
    _, *parts = text.split(_FENCE)
    inside = parts[: len(parts) // 2 * 2 : 2]  # one that has no end is none
    blocks = [part.partition("\n") for part in inside]
    return [(first.strip(), block) for first, newline, block in blocks if newline]


def _from_json(text: str) -> Reply | None:
    try:
        value: Any = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None
    if not isinstance(value, dict) or not value.keys() & {"sql", "refusal", "kind"}:
        return None
    kind = value.get("kind")
    sql, refusal = value.get("sql"), value.get("refusal")
    if isinstance(sql, str) and sql.strip() and kind != "none":
        return Reply(sql=sql.strip(), kind=kind if isinstance(kind, str) and kind in KINDS else None)
    if isinstance(refusal, str) and refusal.strip():
        return Reply(refusal=refusal.strip()[:_MOST_REASON])
    return Reply()
