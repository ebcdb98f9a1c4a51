"""MySQL's values as JSON, from the text that the server sends."""

from collections.abc import Callable
from typing import Any

from pymysql.constants import FIELD_TYPE, FLAG

from app.engines import json_values

Decode = Callable[[bytes], Any]

_BINARY_CHARSET = 63
_INTEGERS = {
    FIELD_TYPE.TINY: "tinyint",
    FIELD_TYPE.SHORT: "smallint",
    FIELD_TYPE.INT24: "mediumint",
    FIELD_TYPE.LONG: "int",
    FIELD_TYPE.LONGLONG: "bigint",
    FIELD_TYPE.YEAR: "year",
}
_FLOATS = {FIELD_TYPE.FLOAT: "float", FIELD_TYPE.DOUBLE: "double"}
_TEXTS = {
    FIELD_TYPE.STRING: ("char", "binary"),
    FIELD_TYPE.VAR_STRING: ("varchar", "varbinary"),
    FIELD_TYPE.VARCHAR: ("varchar", "varbinary"),
    FIELD_TYPE.TINY_BLOB: ("text", "blob"),
    FIELD_TYPE.BLOB: ("text", "blob"),
    FIELD_TYPE.MEDIUM_BLOB: ("text", "blob"),
    FIELD_TYPE.LONG_BLOB: ("text", "blob"),
}
_WORDS = {
    FIELD_TYPE.DECIMAL: "decimal",
    FIELD_TYPE.NEWDECIMAL: "decimal",
    FIELD_TYPE.DATE: "date",
    FIELD_TYPE.NEWDATE: "date",
    FIELD_TYPE.TIME: "time",
    FIELD_TYPE.ENUM: "enum",
    FIELD_TYPE.SET: "set",
    FIELD_TYPE.NULL: "null",
}


def described(field: Any) -> tuple[str, Decode]:
    """The engine's name of a result column's type, and the function that makes JSON of its bytes. `field` is the
    driver's."""
    kind = field.type_code
    if kind in _INTEGERS:
        return _INTEGERS[kind] + (" unsigned" if field.flags & FLAG.UNSIGNED else ""), _integer
    if kind in _FLOATS:
        return _FLOATS[kind], _floating
    if kind in _TEXTS:
        text, octets = _TEXTS[kind]
        if field.charsetnr == _BINARY_CHARSET:
            return octets, json_values.binary
        flagged = "enum" if field.flags & FLAG.ENUM else "set" if field.flags & FLAG.SET else text
        return flagged, _text
    if kind == FIELD_TYPE.TIMESTAMP:
        return "timestamp", lambda value: _moment(value) + "+00:00"  # the session is in UTC
    if kind == FIELD_TYPE.DATETIME:
        return "datetime", _moment
    if kind == FIELD_TYPE.JSON:
        return "json", lambda value: json_values.document(_text(value))
    if kind == FIELD_TYPE.BIT:
        return "bit", lambda value: json_values.integer(int.from_bytes(value, "big"))
    if kind == FIELD_TYPE.GEOMETRY:
        return "geometry", json_values.binary
    return _WORDS.get(kind, "unknown"), _text


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _integer(value: bytes) -> int | str:
    return json_values.integer(int(value))


def _floating(value: bytes) -> float | str:
    return json_values.floating(float(value))


def _moment(value: bytes) -> str:
    return _text(value).replace(" ", "T", 1)
