"""Variables of a blueprint: what their definitions may say, and which values fit them."""

import math
import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec

from app.blueprints.patterns import Pattern, PatternError

MAX_DEFINITIONS = 100
MAX_NAME = 40
MAX_VALUES = 1000
_NAME = re.compile(rf"[A-Za-z_][A-Za-z0-9_]{{0,{MAX_NAME - 1}}}")
_INTEGERS = range(-(2**63), 2**63)


class VariableType(StrEnum):
    """How a value is written into the SQL."""

    IDENTIFIER = "identifier"
    STRING = "string"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    ENUM = "enum"


TEXTS = frozenset({VariableType.IDENTIFIER, VariableType.STRING, VariableType.ENUM})
Value = str | int | float | bool | None


class DefinitionError(Exception):
    """A definition is unusable. `name` is the variable's, `field` the definition's, each None where there is none."""

    def __init__(self, name: str | None, field: str | None, message: str) -> None:
        place = "variables" if name is None else f"variables.{name}" if field is None else f"variables.{name}.{field}"
        super().__init__(f"{place}: {message}.")
        self.place = place
        self.name = name
        self.field = field


class VariableError(Exception):
    """A value is missing, undeclared or doesn't fit. The message names the variable and never holds the value."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"The variable {name} {message}.")
        self.name = name


class Definition(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One variable as its blueprint declares it."""

    type: VariableType
    default: Value = None
    required: bool | None = None
    """Whether a value must be given; if None, it must where there is no default. Without a value and a default the
    variable is NULL."""
    pattern: str | None = None
    """Must be found somewhere in the value; `^` and `$` bind it to the ends. Linear-time syntax: no look-around."""
    min: int | float | None = None
    max: int | float | None = None
    max_length: int | None = None
    """In characters."""
    values: tuple[str, ...] | None = None
    secret: bool = False

    @property
    def is_required(self) -> bool:
        return self.default is None if self.required is None else self.required


def check_definitions(definitions: object) -> dict[str, Definition]:
    """The definitions by name. None means that there are none. Raises `DefinitionError`."""
    if definitions is None:
        return {}
    if not isinstance(definitions, Mapping):
        raise DefinitionError(None, None, "must be an object that gives each variable its definition")
    if len(definitions) > MAX_DEFINITIONS:
        raise DefinitionError(None, None, f"at most {MAX_DEFINITIONS} variables can be declared")
    return {name: _definition(name, given) for name, given in definitions.items()}


def check_values(definitions: Mapping[str, Definition], values: Mapping[str, Any] | None) -> dict[str, Value]:
    """A value for each definition, defaults filled in. Raises `VariableError`."""
    given = values or {}
    for name in given:
        if name not in definitions:
            raise VariableError(name, "is not declared by the blueprint")
    return {name: _value(name, definition, given.get(name)) for name, definition in definitions.items()}


def _value(name: str, definition: Definition, given: Any) -> Value:
    if given is not None:
        if problem := misfit(definition, given):
            raise VariableError(name, problem)
        value: Value = given
        return value
    if definition.is_required:
        raise VariableError(name, "is required and was not given")
    if definition.default is None and definition.type is VariableType.IDENTIFIER:
        raise VariableError(name, "is an identifier, has no default and was not given")
    return definition.default


def misfit(definition: Definition, value: Any) -> str | None:
    """What is wrong with a value, in words that follow the variable's name; None for one that fits."""
    if definition.type in TEXTS:
        return _text_misfit(definition, value)
    if definition.type is VariableType.BOOLEAN:
        return None if isinstance(value, bool) else "must be true or false"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "must be an integer" if definition.type is VariableType.INTEGER else "must be a number"
    if definition.type is VariableType.INTEGER and (not isinstance(value, int) or value not in _INTEGERS):
        return "must be an integer of 64 bits"
    if isinstance(value, int) and value not in _INTEGERS:
        return "must be a number of 64 bits"
    if not math.isfinite(value):
        return "must be a finite number"
    if definition.min is not None and value < definition.min:
        return f"must be at least {definition.min}"
    if definition.max is not None and value > definition.max:
        return f"must be at most {definition.max}"
    return None


def _text_misfit(definition: Definition, value: Any) -> str | None:
    if not isinstance(value, str):
        return "must be a string"
    if "\0" in value:
        return "holds a NUL character, which no database stores in text"
    if any("\ud800" <= character <= "\udfff" for character in value):
        return "holds half a character (a lone surrogate)"
    if definition.type is VariableType.ENUM:
        allowed = definition.values or ()
        return None if value in allowed else f"must be one of {', '.join(allowed[:20])}"
    if definition.type is VariableType.IDENTIFIER and (problem := _identifier_misfit(value)):
        return problem
    if definition.max_length is not None and len(value) > definition.max_length:
        return f"is longer than {definition.max_length} characters"
    if definition.pattern is not None and not Pattern(definition.pattern).found_in(value):
        return f"must match {definition.pattern}"
    return None


def _identifier_misfit(value: str) -> str | None:
    if not value:
        return "must not be empty"
    if len(value.encode()) > 63:
        return "is longer than 63 bytes, the longest name that both engines take"
    if not value.isprintable() or value != value.strip() or any(ord(character) > 0xFFFF for character in value):
        return "holds characters that a name can't have, such as control characters or outer blanks"
    return None


def _definition(name: object, given: object) -> Definition:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        rule = f"a name has letters, digits and _, at most {MAX_NAME}, and doesn't begin with a digit"
        raise DefinitionError(str(name), None, rule)
    if not isinstance(given, Mapping):
        raise DefinitionError(name, None, "a definition is an object with at least a type")
    for field in given:
        if field not in Definition.__struct_fields__:
            known = ", ".join(Definition.__struct_fields__)
            raise DefinitionError(name, str(field), f"is unknown; a definition may have {known}")
    if "type" not in given:
        raise DefinitionError(name, "type", f"is required: one of {', '.join(VariableType)}")
    for field, value in given.items():
        _check_shape(name, field, value)
    definition = msgspec.convert(dict(given), Definition)
    _check_sense(name, definition, given)
    return definition


def _check_shape(name: str, field: str, value: object) -> None:
    annotation = {item.name: item.type for item in msgspec.structs.fields(Definition)}[field]
    try:
        msgspec.convert(value, annotation)
    except msgspec.ValidationError as error:
        if field == "type":
            raise DefinitionError(name, field, f"must be one of {', '.join(VariableType)}") from None
        raise DefinitionError(name, field, str(error)) from None


_FIELDS = {
    VariableType.IDENTIFIER: {"pattern", "max_length"},
    VariableType.STRING: {"pattern", "max_length"},
    VariableType.INTEGER: {"min", "max"},
    VariableType.NUMBER: {"min", "max"},
    VariableType.BOOLEAN: set[str](),
    VariableType.ENUM: {"values"},
}


def _check_sense(name: str, definition: Definition, given: Mapping[str, Any]) -> None:
    for field in ("pattern", "min", "max", "max_length", "values"):
        if given.get(field) is not None and field not in _FIELDS[definition.type]:
            raise DefinitionError(name, field, f"means nothing for the type {definition.type}")
    if definition.type is VariableType.ENUM:
        values = definition.values
        if not values or len(values) > MAX_VALUES or len(set(values)) != len(values):
            raise DefinitionError(name, "values", f"an enum lists 1 to {MAX_VALUES} different strings")
        text = Definition(type=VariableType.STRING)
        for value in values:
            if problem := misfit(text, value):
                raise DefinitionError(name, "values", f"a value {problem}")
    if definition.min is not None and definition.max is not None and definition.min > definition.max:
        raise DefinitionError(name, "min", "is greater than max")
    if definition.max_length is not None and definition.max_length < 1:
        raise DefinitionError(name, "max_length", "must be at least 1")
    if definition.pattern is not None:
        try:
            Pattern(definition.pattern)
        except PatternError as error:
            raise DefinitionError(name, "pattern", str(error)) from None
    if definition.default is not None and (problem := misfit(definition, definition.default)):
        raise DefinitionError(name, "default", problem)
    if definition.type is VariableType.IDENTIFIER and definition.default is None and definition.required is False:
        raise DefinitionError(name, "required", "a name can't be left out: give a default, or require it")
