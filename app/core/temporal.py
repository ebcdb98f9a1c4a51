"""The connection to Temporal, with msgspec as the encoding of all payloads."""

import dataclasses
import logging
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import msgspec
from temporalio.api.common.v1 import Payload
from temporalio.client import Client, Interceptor
from temporalio.converter import (
    CompositePayloadConverter,
    DataConverter,
    DefaultPayloadConverter,
    EncodingPayloadConverter,
    JSONPlainPayloadConverter,
)
from temporalio.runtime import LogForwardingConfig, LoggingConfig, Runtime, TelemetryConfig
from temporalio.service import TLSConfig

from app.core.settings import Settings
from app.core.tracing.spans import Tracer
from app.core.tracing.temporal import TracedStarts


@lru_cache(maxsize=256)
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


class MsgspecPayloadConverter(EncodingPayloadConverter):
    """JSON by msgspec: a value that doesn't fit the declared type is rejected when it is decoded."""

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
CORE_LOG = LoggingConfig(
    filter=LoggingConfig.default.filter,
    forwarding=LogForwardingConfig(
        logger=logging.getLogger("temporalio.core"),
        append_target_to_name=False,
        prepend_target_on_message=False,
        append_log_fields_to_message=False,
    ),
)
"""The logging of every runtime: by default the SDK's core, which is written in Rust, would write its warnings to the
process's output in a format of its own. The fields of a record are added by `log_values.add_core_fields`."""


async def connect(
    address: str,
    namespace: str,
    *,
    lazy: bool = False,
    runtime: Runtime | None = None,
    tls: TLSConfig | None = None,
    api_key: str | None = None,
    interceptors: Sequence[Interceptor] = (),
) -> Client:
    """Returns a client. A lazy one connects at its first call, so that the API starts, and accepts creates, while
    Temporal is unavailable. Without `runtime` the clients of the process share one."""
    return await Client.connect(
        address,
        namespace=namespace,
        data_converter=DATA_CONVERTER,
        lazy=lazy,
        runtime=runtime or _shared_runtime(),
        tls=tls or False,
        api_key=api_key,
        interceptors=interceptors,
    )


async def connect_from_settings(
    settings: Settings, *, lazy: bool = False, runtime: Runtime | None = None, tracer: Tracer | None = None
) -> Client:
    """Connects to Temporal as the settings say. Raises `RuntimeError` when it can't be reached or its certificate isn't
    accepted."""
    return await connect(
        settings.temporal_address,
        settings.temporal_namespace,
        lazy=lazy,
        runtime=runtime,
        tls=_tls(settings),
        api_key=settings.temporal_api_key,
        interceptors=() if tracer is None else [TracedStarts(tracer)],
    )


def page_of(settings: Settings, kind: Literal["workflows", "schedules"], id: str | None) -> str | None:
    """The address of a workflow or a Schedule in Temporal's web pages; None where these aren't known."""
    if settings.temporal_ui_url is None or id is None:
        return None
    namespace = quote(settings.temporal_namespace, safe="")
    return f"{settings.temporal_ui_url.rstrip('/')}/namespaces/{namespace}/{kind}/{quote(id, safe='')}"


@cache
def _shared_runtime() -> Runtime:
    """The runtime that the clients share, because each runtime has a pool of threads."""
    return Runtime(telemetry=TelemetryConfig(logging=CORE_LOG))


def _tls(settings: Settings) -> TLSConfig | None:
    # Without TLS, anybody on the network could read the API key.
    if not (settings.temporal_tls or settings.temporal_api_key or any(_tls_settings(settings))):
        return None
    authority, certificate, key, name = _tls_settings(settings)
    return TLSConfig(
        server_root_ca_cert=_read(authority),
        domain=name,
        client_cert=_read(certificate),
        client_private_key=_read(key),
    )


def _tls_settings(settings: Settings) -> tuple[Path | None, Path | None, Path | None, str | None]:
    return (
        settings.temporal_tls_ca_file,
        settings.temporal_tls_cert_file,
        settings.temporal_tls_key_file,
        settings.temporal_tls_server_name,
    )


def _read(file: Path | None) -> bytes | None:
    return file.read_bytes() if file else None
