"""Labels of databases: what a team says of them, to find them by. In our own rows each is one text, `key:value`; no key
has a colon."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from app.core.errors import InvalidField

MOST_LABELS = 32
"""The most labels of one database."""
KEY_PATTERN = "[a-z0-9][a-z0-9_.-]{0,62}"
VALUE_PATTERN = r"[^\x00-\x1f\x7f-\x9f]{0,255}"
"""No control characters."""

_KEY_RULE = "1 to 63 of a-z, 0-9, _, . and -, the first a letter or a digit"
_VALUE_RULE = "at most 255 characters, none of them a control character"
_SHOWN = 63
"""How many characters of a wrong key or label an error repeats."""


def labels_schema(*, removable: bool) -> dict[str, Any]:
    """The JSON Schema of a map of labels; with `removable`, null takes a label away."""
    value: dict[str, Any] = {"type": "string", "pattern": f"^{VALUE_PATTERN}$", "maxLength": 255}
    return {
        "propertyNames": {"pattern": f"^{KEY_PATTERN}$"},
        "additionalProperties": {"anyOf": [value, {"type": "null"}]} if removable else value,
        "maxProperties": MOST_LABELS,
    }


def new_labels(given: Mapping[str, str]) -> tuple[str, ...]:
    """The labels of a new database, as they are recorded. Raises `InvalidField`."""
    return _recorded(given)


def change_labels(recorded: Sequence[str], given: Mapping[str, str | None] | None) -> tuple[str, ...]:
    """The labels after a change, by the rules of JSON Merge Patch (RFC 7396): a label that is named gets the value
    given, or is removed where that is null; the others stay. Null in place of the map removes all. Raises
    `InvalidField`."""
    if given is None:
        return ()
    for key in given:
        _check_key(key)
    merged = {**label_map(recorded), **given}
    return _recorded({key: value for key, value in merged.items() if value is not None})


def label_map(recorded: Iterable[str]) -> dict[str, str]:
    """The labels as clients see them."""
    return dict(label.split(":", 1) for label in recorded)


def parse_label(text: str) -> str:
    """Checks a label that is searched for, as `key:value`. Raises `InvalidField`."""
    key, colon, value = text.partition(":")
    if not colon or not re.fullmatch(KEY_PATTERN, key) or not re.fullmatch(VALUE_PATTERN, value):
        raise InvalidField(
            "label",
            f"{text[:_SHOWN]!r} is not a label. Expected key:value, the key {_KEY_RULE}; the value {_VALUE_RULE}.",
        )
    return text


def _recorded(labels: Mapping[str, str]) -> tuple[str, ...]:
    for key, value in labels.items():
        _check_key(key)
        if not re.fullmatch(VALUE_PATTERN, value):
            raise InvalidField(f"labels.{key}", f"The value of the label {key} has to have {_VALUE_RULE}.")
    if len(labels) > MOST_LABELS:
        raise InvalidField("labels", f"A database has at most {MOST_LABELS} labels; these would be {len(labels)}.")
    return tuple(f"{key}:{labels[key]}" for key in sorted(labels))


def _check_key(key: str) -> None:
    if not re.fullmatch(KEY_PATTERN, key):
        shown = key[:_SHOWN]
        raise InvalidField(f"labels.{shown}", f"{shown!r} can't be a label's key: that has {_KEY_RULE}.")
