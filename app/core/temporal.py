"""The connection to Temporal, and msgspec as the form of everything that crosses it."""

import dataclasses
from functools import lru_cache
from typing import Any

import msgspec
from temporalio.api.common.v1 import Payload
from temporalio.client import Client
from temporalio.converter import (
    CompositePayloadConverter,
    DataConverter,
    DefaultPayloadConverter,
    EncodingPayloadConverter,
    JSONPlainPayloadConverter,
)
from temporalio.runtime import Runtime


@lru_cache(maxsize=256)
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


class MsgspecPayloadConverter(EncodingPayloadConverter):
    """JSON by msgspec: a value that doesn't fit the declared type is refused at the boundary."""

    @property
    def encoding(self) -> str:
        return "json/plain"

    def to_payload(self, value: Any) -> Payload | None:
        return Payload(metadata={"encoding": b"json/plain"}, data=msgspec.json.encode(value))

    def from_payload(self, payload: Payload, type_hint: type | None = None) -> Any:
        return _decoder(type_hint or Any).decode(payload.data)


class HeadwaterPayloadConverter(CompositePayloadConverter):
    """Temporal's own converters, with msgspec in the place of its JSON one."""

    def __init__(self) -> None:
        super().__init__(
            *(
                MsgspecPayloadConverter() if isinstance(converter, JSONPlainPayloadConverter) else converter
                for converter in DefaultPayloadConverter.default_encoding_payload_converters
            )
        )


DATA_CONVERTER = dataclasses.replace(DataConverter.default, payload_converter_class=HeadwaterPayloadConverter)


async def connect(address: str, namespace: str, *, lazy: bool = False, runtime: Runtime | None = None) -> Client:
    """A client. A lazy one connects at its first call, so that the API starts, and accepts creates, while
    Temporal is away. `runtime` is the SDK's own unless given."""
    return await Client.connect(address, namespace=namespace, data_converter=DATA_CONVERTER, lazy=lazy, runtime=runtime)
