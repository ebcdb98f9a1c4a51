"""PostgreSQL's values as JSON. A type without a lossless counterpart in the driver is read as the server's text."""

from collections.abc import Callable
from typing import Any

from app.engines import json_values
from app.engines.postgres import arrays

Decode = Callable[[Any], Any]

_AS_IT_IS: dict[str, Decode] = {
    "bool": lambda value: value,
    "int2": lambda value: value,
    "int4": lambda value: value,
    "int8": json_values.integer,
    "oid": lambda value: value,
    "float4": json_values.floating,
    "float8": json_values.floating,
    "text": lambda value: value,
    "varchar": lambda value: value,
    "bpchar": lambda value: value,
    "name": lambda value: value,
    "bytea": json_values.binary,
    "json": json_values.document,
    "jsonb": json_values.document,
}
"""Types that the driver decodes without loss."""


def _boolean(text: str) -> bool:
    return text == "t"


def _floating(text: str) -> Any:
    return json_values.floating(float(text))


def _octets(text: str) -> str:
    return json_values.binary(bytes.fromhex(text.removeprefix("\\x")))


_FROM_TEXT: dict[str, Decode] = {
    "bool": _boolean,
    "int2": int,
    "int4": int,
    "int8": lambda text: json_values.integer(int(text)),
    "oid": int,
    "float4": _floating,
    "float8": _floating,
    "bytea": _octets,
    "json": json_values.document,
    "jsonb": json_values.document,
    "timestamp": lambda text: _moment(text),
    "timestamptz": lambda text: _moment(text),
}
"""Conversions from text, as array elements arrive; other types stay text."""


def _moment(text: str) -> str:
    """ISO 8601 with `T` and a full offset in place of PostgreSQL's space and `+00`; `infinity` and years BC stay as
    they are."""
    if not text[:1].isdigit() or text.endswith(" BC"):
        return text
    moment = text.replace(" ", "T", 1)
    return moment + ":00" if len(moment) > 3 and moment[-3] in "+-" and ":" in moment else moment


def needs_text(type_: Any) -> bool:
    """Whether a column of this type (the driver's description) has to be requested as text."""
    return not _is_known(type_)


def decoder(type_: Any) -> Decode:
    """The function from the driver's value (text where `needs_text` says so) to JSON."""
    if _is_known(type_):
        return _AS_IT_IS[type_.name]
    if type_.schema != "pg_catalog" or type_.kind not in ("scalar", "array"):
        return _same
    if type_.kind == "array" and type_.name != "box[]":  # whose elements alone are not parted by commas
        element = _FROM_TEXT.get(type_.name.removesuffix("[]"), _same)
        return lambda text: arrays.parse(text, element)
    return _FROM_TEXT.get(type_.name, _same)


def _is_known(type_: Any) -> bool:
    return type_.kind == "scalar" and type_.schema == "pg_catalog" and type_.name in _AS_IT_IS


def _same(value: Any) -> Any:
    return value
