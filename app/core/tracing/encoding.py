"""Spans in the form in which collectors take them: `ExportTraceServiceRequest` of OTLP 1.x, in Protocol Buffers.

https://github.com/open-telemetry/opentelemetry-proto/blob/main/opentelemetry/proto/trace/v1/trace.proto

Written by hand, a span costs a twentieth of what OpenTelemetry's SDK for Python takes for it: see
docs/decisions/0059-spans-of-our-own.md. The tests read it with the generated classes of `opentelemetry-proto`.
"""

import struct
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache

from app.core.tracing.context import SpanContext

Value = str | int | bool | float
Attributes = Mapping[str, Value]

_MAX_CHARACTERS = 256
"""Characters of a text in an attribute. Our own texts are shorter; a longer one is cut off."""
_TIMES = struct.Struct("<BQBQ").pack
_FLAGS = struct.Struct("<I").pack
_DOUBLE = struct.Struct("<d").pack
_USUAL = 60
"""Characters of a key and of a text, up to which both and their lengths fit into one byte of length."""
_SHORT = [bytes([number]) for number in range(128)]
_IS_REMOTE, _HAS_IS_REMOTE, _SAMPLED = 0x200, 0x100, 0x001
"""`SpanFlags`: whether the parent, or the link, lies in another process."""
_OWN_PARENT = b"\x85\x01" + _FLAGS(_SAMPLED | _HAS_IS_REMOTE)
_REMOTE_PARENT = b"\x85\x01" + _FLAGS(_SAMPLED | _HAS_IS_REMOTE | _IS_REMOTE)
_KEPT_NUMBERS = 4096
"""How many encoded attributes with numbers are kept; each has some hundred bytes."""


def varint(number: int) -> bytes:
    """A non-negative number of at most 64 bits, in groups of seven bits, the lowest first."""
    if number < 128:
        return _SHORT[number]
    octets = bytearray()
    while number >= 128:
        octets.append(number & 0x7F | 0x80)
        number >>= 7
    octets.append(number)
    return bytes(octets)


def block(tag: int, content: bytes) -> bytes:
    """A field with a length: a text, bytes, or a message."""
    return varint(tag << 3 | 2) + varint(len(content)) + content


def key_value(key: str, value: Value) -> bytes:
    """The message `KeyValue`."""
    return block(1, key.encode()) + block(2, _any_value(value))


def _any_value(value: Value) -> bytes:
    if isinstance(value, str):
        return block(1, value[:_MAX_CHARACTERS].encode(errors="replace"))
    if isinstance(value, bool):
        return b"\x10\x01" if value else b"\x10\x00"
    if isinstance(value, int):
        return b"\x18" + varint(value & 0xFFFF_FFFF_FFFF_FFFF)
    return b"\x21" + _DOUBLE(value)


def encoded_attributes(attributes: Attributes) -> bytes:
    """The attributes as fields of a span. Those that many spans share are worth keeping."""
    return b"".join([_attribute(key, value) for key, value in attributes.items()])


def _attribute(key: str, value: Value) -> bytes:
    if type(value) is str and len(value) < _USUAL:
        # The most frequent forms, in a third of the time.
        text = value.encode(errors="replace")
        before, length = _encoded_key(key), len(text)
        if length < _USUAL:
            return b"\x4a%c%b\x12%c\x0a%c%b" % (len(before) + length + 4, before, length + 2, length, text)
    elif type(value) is int and value >= 0:
        return _number(key, value)
    return block(9, key_value(key, value))


@lru_cache(maxsize=_KEPT_NUMBERS)
def _number(key: str, value: int) -> bytes:
    """Cached: the same numbers come again and again, such as the ids of API keys and teams."""
    before, number = _encoded_key(key), varint(value & 0xFFFF_FFFF_FFFF_FFFF)
    return b"\x4a%c%b\x12%c\x18%b" % (len(before) + len(number) + 3, before, len(number) + 1, number)


@cache
def _encoded_key(key: str) -> bytes:
    """Cached: there are few keys."""
    assert len(key) < _USUAL, "our own keys are short"
    return block(1, key.encode())


@cache
def _encoded_kind(name: str, kind: int) -> bytes:
    """The name and the kind, of which there are few."""
    return block(5, name.encode()) + b"\x30" + _SHORT[kind]


def encoded_span(
    own: SpanContext,
    *,
    name: str,
    kind: int,
    began: int,
    ended: int,
    parent: bytes | None,
    remote: bool,
    attributes: bytes,
    links: Sequence[SpanContext],
    failed: bool,
) -> bytes:
    """The span as a field of `ScopeSpans`. `name` is one of few names. Times are in nanoseconds since 1970; `remote`
    says whether the parent lies in another process. The words of a failure are left out: they may quote anything."""
    content = b"".join(
        (
            b"\x0a\x10" + own.trace_id + b"\x12\x08" + own.span_id,
            b"" if parent is None else b"\x22\x08" + parent,
            _encoded_kind(name, kind),
            _TIMES(0x39, began, 0x41, ended),
            attributes,
            b"".join([block(13, _link(link)) for link in links]) if links else b"",
            b"\x7a\x02\x18\x02" if failed else b"",
            _REMOTE_PARENT if remote else _OWN_PARENT,
        )
    )
    return b"\x12" + varint(len(content)) + content


def _link(link: SpanContext) -> bytes:
    flags = _HAS_IS_REMOTE | _IS_REMOTE | link.sampled
    return block(1, link.trace_id) + block(2, link.span_id) + b"\x35" + _FLAGS(flags)


def encoded_request(resource: bytes, scope: bytes, spans: Sequence[bytes]) -> bytes:
    """The message `ExportTraceServiceRequest` with spans of one process."""
    return block(1, block(1, resource) + block(2, scope + b"".join(spans)))


def encoded_resource(attributes: Attributes) -> bytes:
    """The message `Resource`."""
    return b"".join(block(1, key_value(key, value)) for key, value in attributes.items())


def encoded_scope(name: str, version: str) -> bytes:
    """What made the spans, as a field of `ScopeSpans`."""
    return block(1, block(1, name.encode()) + block(2, version.encode()))
