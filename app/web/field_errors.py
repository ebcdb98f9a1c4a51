"""Turns msgspec's message about a body that doesn't fit its struct into an error that names the field, in JSON's
words."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect

from app.core.errors import AppError, InvalidField, MissingRequiredField

_MISSING = re.compile(r"missing required field `(?P<field>[^`]+)`")
_UNKNOWN = re.compile(r"contains unknown field `(?P<field>[^`]+)`")
_PATH = re.compile(r"^(?P<what>.*?) - at `\$\.?(?P<field>[^`]*)`$", re.DOTALL)
_TYPE = re.compile(r"(?<=`)[a-z| ]+(?=`)")
_MOST_KEY = 63
"""Characters that an error repeats of a key."""
_NAMES = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}
"""Python's names of types, which no client knows, and JSON's."""


def field_error(fault: msgspec.ValidationError, kind: type[msgspec.Struct], body: Any = None) -> AppError:
    """`MissingRequiredField` or `InvalidField`, for a body that was read as that struct. `body` is what it holds, where
    that is known."""
    text = str(fault)
    place = _PATH.match(text)
    path, what = (place["field"], place["what"]) if place else ("", text)
    path = _with_key(path, kind, body)
    missing, unknown = _MISSING.search(what), _UNKNOWN.search(what)
    if missing:
        return MissingRequiredField(".".join(part for part in (path, missing["field"]) if part))
    if unknown:
        name = ".".join(part for part in (path, unknown["field"]) if part)
        return InvalidField(name, f"There is no field {name}.")
    return InvalidField(path or "body", f"{path or 'The body'}: {_words(what, path, kind)}.")


def _with_key(path: str, kind: type[msgspec.Struct], body: Any) -> str:
    """The path with the key of the value that doesn't fit, where the client chooses the keys: msgspec doesn't say
    which."""
    name, mark, rest = path.partition("[...]")
    field = next((one for one in msgspec.structs.fields(kind) if one.encode_name == name), None)
    if not mark or field is None or not isinstance(body, dict):
        return path
    for key, value in body[name].items():
        try:
            msgspec.convert({key: value}, field.type)
        except msgspec.ValidationError:
            return f"{name}.{key[:_MOST_KEY]}{rest}"
    return path


def _words(what: str, path: str, kind: type[msgspec.Struct]) -> str:
    if what.startswith("Invalid enum value") and (choices := list(_choices(path, kind))):
        return f"Expected one of {', '.join(choices)}"
    # msgspec doubles the backslashes of a pattern; clients know neither \A nor \Z from the API's description.
    what = what.replace("\\\\", "\\").replace(r"\A", "^").replace(r"\Z", "$")
    return _TYPE.sub(lambda types: " | ".join(_NAMES.get(one, one) for one in types[0].split(" | ")), what)


def _choices(path: str, kind: type[msgspec.Struct]) -> Iterator[str]:
    """The values that a field of the struct itself may have, where it may have no others."""
    for field in msgspec.structs.fields(kind):
        if field.encode_name == path:
            found = inspect.type_info(field.type)
            for one in found.types if isinstance(found, inspect.UnionType) else (found,):
                if isinstance(one, inspect.EnumType):
                    yield from (str(member.value) for member in one.cls)
                elif isinstance(one, inspect.LiteralType):
                    yield from map(str, one.values)
