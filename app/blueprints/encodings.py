"""SQL that a request sends as text, or as octets in base64: a dump may hold octets that are no text."""

import asyncio
import binascii
from typing import TypeVar

import msgspec
from msgspec import UNSET

from app.blueprints.schemas import MOST_CHARACTERS, CreateBlueprint, SqlEncoding, UpdateBlueprint, ValidateBlueprint
from app.core.errors import InvalidField
from app.dialects.errors import SqlError
from app.dialects.positions import Lines
from app.dialects.registry import DIALECTS

_FIELD = "sql_content"

Request = TypeVar("Request", CreateBlueprint, UpdateBlueprint, ValidateBlueprint)


async def as_text(request: Request) -> Request:
    """The request with its SQL as text. Raises `InvalidField`."""
    if request.sql_encoding is SqlEncoding.TEXT or request.sql_content is UNSET:
        return request
    # In a thread of its own: a megabyte takes a while.
    sql = await asyncio.to_thread(_decoded, request.sql_content)
    return msgspec.structs.replace(request, sql_content=sql, sql_encoding=SqlEncoding.TEXT)


def text_of(script: bytes) -> str:
    """A script as a blueprint holds it. Octets that are no text are written as their engine writes them in text.
    Raises `InvalidField`."""
    try:
        sql = script.decode()
    except UnicodeDecodeError:
        sql = _without_octets(script.decode(errors="surrogateescape"))
    if not sql or "\0" in sql:
        raise InvalidField(_FIELD, "It is empty, or holds NUL.")
    if len(sql) > MOST_CHARACTERS:
        raise InvalidField(_FIELD, f"It has {len(sql)} characters as text, with binary strings in hexadecimal.")
    return sql


def _decoded(encoded: str) -> str:
    try:
        return text_of(binascii.a2b_base64(encoded, strict_mode=True))
    except (ValueError, binascii.Error):
        raise InvalidField(_FIELD, "It is not base64, as RFC 4648 has it in section 4.") from None


def _without_octets(script: str) -> str:
    reasons = []
    for dialect in DIALECTS.values():
        try:
            return dialect.without_octets(script)
        except SqlError as error:
            reasons.append(f"{Lines(script).place(error.offset)} ({dialect.label}): {error.message}")
    raise InvalidField(_FIELD, "; ".join(reasons))
