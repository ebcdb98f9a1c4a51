"""Reading JSON bodies: strictly, and with errors that name the field."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

import msgspec
from litestar.dto import AbstractDTO
from litestar.openapi.spec import Reference, Schema
from litestar.typing import FieldDefinition

from app.core.errors import InvalidField, MalformedJSON
from app.web.field_errors import field_error

T = TypeVar("T", bound=msgspec.Struct)

_EXACT = 2**53
"""Up to here every integer has a float of its own."""
_NUL = b"\\u0000"
"""How JSON writes the character; raw, it is no JSON."""


class JSONBody(AbstractDTO[T], Generic[T]):
    """Decodes a handler's `data` as one struct. Litestar's own decoding takes `"30"` for 30 and answers 400
    to what the specification wants as 422."""

    def decode_bytes(self, value: bytes) -> T:
        """Raises `MalformedJSON`, `MissingRequiredField` or `InvalidField`."""
        return decode(value, self.model_type)

    def decode_builtins(self, value: dict[str, Any]) -> Any:
        """Bodies are JSON, whatever their Content-Type says."""
        raise NotImplementedError

    def data_to_encodable_type(self, data: Any) -> Any:
        """Answers need no transfer object."""
        raise NotImplementedError

    @classmethod
    def detect_nested_field(cls, field_definition: FieldDefinition) -> bool:
        return False

    @classmethod
    def generate_field_definitions(cls, model_type: type[Any]) -> Any:
        return ()

    @classmethod
    def create_for_field_definition(
        cls, field_definition: FieldDefinition, handler_id: str, backend_cls: Any = None
    ) -> None:
        """The struct is used as it is; there is no backend to make."""

    @classmethod
    def create_openapi_schema(
        cls, field_definition: FieldDefinition, handler_id: str, schema_creator: Any
    ) -> Reference | Schema:
        schema: Reference | Schema = schema_creator.for_field_definition(field_definition)
        return schema


def decode(body: bytes, kind: type[T]) -> T:
    """The body as a struct. Raises `MalformedJSON`, `MissingRequiredField` or `InvalidField`."""
    value = None
    try:
        with _as_malformed():
            value = _whole_numbers(_untyped(body, kind))
            struct = msgspec.convert(value, kind)
            if _NUL in body:
                _refuse_nul(value)
            return struct
    except msgspec.ValidationError as fault:
        raise field_error(fault, kind, value) from None


def _untyped(body: bytes, kind: type[T]) -> Any:
    """The body as plain values. What is valid JSON but fits no value, such as a number out of range, is refused by the
    struct's own decoder, which knows the field."""
    try:
        return msgspec.json.decode(body)
    except msgspec.ValidationError:
        msgspec.json.decode(body, type=kind)
        raise


def canonical(body: bytes) -> bytes:
    """The same bytes for bodies that differ only in blanks and the order of keys. Raises `MalformedJSON` or
    `InvalidField`."""
    try:
        with _as_malformed():
            return msgspec.json.encode(msgspec.json.decode(body), order="sorted") if body.strip() else b""
    except msgspec.ValidationError as fault:
        # Valid JSON that fits no value, such as a number out of range. No struct says the field.
        raise InvalidField("body", f"The body: {str(fault).partition(' - at ')[0]}.") from None


@contextmanager
def _as_malformed() -> Iterator[None]:
    try:
        yield
    except msgspec.ValidationError:
        raise
    except (msgspec.DecodeError, UnicodeDecodeError) as fault:
        raise MalformedJSON(f"The body is not JSON: {fault}") from None
    except RecursionError:
        raise MalformedJSON("The body is nested too deeply.") from None


def _whole_numbers(value: Any) -> Any:
    """`24.0` as 24: JSON knows one kind of number, and JSON Schema calls both an integer (2020-12 validation,
    section 6.1.1)."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < _EXACT else value
    if isinstance(value, dict):
        return {key: _whole_numbers(item) for key, item in value.items()}
    return [_whole_numbers(item) for item in value] if isinstance(value, list) else value


def _refuse_nul(value: Any) -> None:
    """Raises `InvalidField` for the first field with a NUL character in its text or its own name."""
    for field, text in _texts(value, ""):
        if "\x00" in text:
            raise InvalidField(field, f"{field}: holds a NUL character, which no database stores in text.")


def _texts(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            inner = f"{path}.{key}" if path else key
            yield inner, key
            yield from _texts(item, inner)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts(item, f"{path}[{index}]")
