"""Validation and variables in the API's words: errors that name a field."""

import asyncio
from collections.abc import Set
from typing import Any

from app.blueprints.bounds import MAX_BYTES, check_new, size_of
from app.blueprints.preparation import PreparedStatement, ScriptError, prepare
from app.blueprints.schemas import Metadata
from app.blueprints.validation import Validation, validate
from app.blueprints.variables import DefinitionError, VariableError, check_values
from app.contracts.base import Engine
from app.core.errors import BlueprintInvalid, InvalidField
from app.hosts.records import offered_extensions


def check(sql: str, definitions: dict[str, Any] | None, provided: Set[str] = frozenset()) -> Metadata:
    """Checks SQL that is to be saved; without definitions no variable may be in it. Raises `BlueprintInvalid`, or
    `InvalidField` naming a variable."""
    result = validated(sql, definitions or {}, provided)
    if not result.valid:
        raise BlueprintInvalid(result.errors)
    return Metadata(
        dialects=result.manifest.dialects,
        statement_count=result.statement_count,
        extensions=result.manifest.extensions,
        statements_left_out=sum(one.left_out is not None for one in result.manifest.statements),
    )


def validated(sql: str, definitions: dict[str, Any] | None, provided: Set[str] = frozenset()) -> Validation:
    """Validates SQL; with `definitions` None any variable may be in it. Raises `InvalidField` for a definition that
    can't be used."""
    try:
        check_new(definitions or {})
        return validate(sql, definitions, provided)
    except DefinitionError as error:
        raise InvalidField(error.place, str(error)) from None


async def prepared(
    sql: str, engine: Engine, definitions: dict[str, Any] | None, values: dict[str, Any], *, field: str
) -> list[PreparedStatement]:
    """Statements to run. Raises `InvalidField` naming the variable beneath `field`, or `BlueprintInvalid`."""
    try:
        provided = await offered_extensions()
        # In a thread of its own: a megabyte takes the parsers a while.
        return await asyncio.to_thread(prepare, sql, engine, definitions, values, provided)
    except VariableError as error:
        raise InvalidField(f"{field}.{error.name}", str(error)) from None
    except DefinitionError as error:
        raise InvalidField(error.place, str(error)) from None
    except ScriptError as error:
        raise BlueprintInvalid(error.errors) from None


def check_size(values: dict[str, Any], *, field: str) -> None:
    """Checks the size of values that are asked for now. Raises `InvalidField`."""
    size = size_of(values)
    if size > MAX_BYTES:
        raise InvalidField(field, f"The values have {size} bytes as JSON, and may have {MAX_BYTES}.")


def check_no_values(values: dict[str, Any], *, field: str) -> None:
    """Refuses values for a blueprint without variables, whose SQL was checked as it is. Raises `InvalidField` naming
    the first value."""
    try:
        check_values({}, values)
    except VariableError as error:
        raise InvalidField(f"{field}.{error.name}", str(error)) from None


def secret_names(definitions: dict[str, Any] | None) -> set[str]:
    return {name for name, definition in (definitions or {}).items() if definition.get("secret")}
