"""Whether and where spans are sent: the environment variables that OpenTelemetry has named for everybody.

https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/
https://opentelemetry.io/docs/specs/otel/protocol/exporter/

They have no prefix of ours, for an operator sets them once for all programs. Without an endpoint nothing is traced, and
no other variable is looked at. The names that aren't read here are other programs': they are no error.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec

from app.core.settings import InvalidSettings
from app.core.tracing import sampling

_PREFIX = "OTEL_"
_PATH = "/v1/traces"
_MOST = 1_000_000


class TracingSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Times are in seconds, where the variables have milliseconds."""

    endpoint: str
    """The whole address to which spans are posted."""
    headers: tuple[tuple[str, str], ...] = ()
    """They may hold a secret: no message and no `repr` shows them."""
    timeout: float = 10
    """The time limit of one request."""
    gzip: bool = False
    certificate: Path | None = None
    """The authorities that may sign the collector's certificate, in PEM; by default those that this machine trusts."""
    sampler: str = "parentbased_always_on"
    ratio: float = 1
    service_name: str | None = None
    resource: tuple[tuple[str, str], ...] = ()
    delay: float = 5
    """How long spans are collected before they are sent."""
    batch: int = 512
    """Spans in one request."""
    queue: int = 2048
    """Spans that wait. More are dropped."""

    def __repr__(self) -> str:
        return f"TracingSettings({self.endpoint!r})"

    @classmethod
    def load(cls, environ: Mapping[str, str]) -> "TracingSettings | None":
        """None where nothing is traced. Raises `InvalidSettings`, which names every variable that has an unusable
        value, and shows no value."""
        given = {
            name.removeprefix(_PREFIX): text.strip()
            for name, text in environ.items()
            if name.startswith(_PREFIX) and text.strip()
        }
        if given.get("SDK_DISABLED", "").lower() == "true" or given.get("TRACES_EXPORTER", "otlp") == "none":
            return None
        if "EXPORTER_OTLP_TRACES_ENDPOINT" not in given and "EXPORTER_OTLP_ENDPOINT" not in given:
            return None
        reading = _Variables(given)
        values = {
            "endpoint": reading.endpoint(),
            "headers": reading.of_exporter("HEADERS", _pairs),
            "timeout": reading.of_exporter("TIMEOUT", _seconds),
            "gzip": reading.of_exporter("COMPRESSION", _gzip),
            "certificate": reading.of_exporter("CERTIFICATE", _file),
            "sampler": reading.of("TRACES_SAMPLER", _sampler),
            "ratio": reading.of("TRACES_SAMPLER_ARG", _ratio),
            "service_name": reading.of("SERVICE_NAME", str),
            "resource": reading.of("RESOURCE_ATTRIBUTES", _pairs),
            "delay": reading.of("BSP_SCHEDULE_DELAY", _seconds),
            "batch": reading.of("BSP_MAX_EXPORT_BATCH_SIZE", _count),
            "queue": reading.of("BSP_MAX_QUEUE_SIZE", _count),
        }
        reading.of_exporter("PROTOCOL", _protocol)
        reading.of("TRACES_EXPORTER", _exporter)
        if reading.faults:
            raise InvalidSettings("\n".join(reading.faults))
        return cls(**{name: value for name, value in values.items() if value is not None})


class _Variables:
    """Reads the variables, and collects what is wrong with their values."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = given
        self.faults: list[str] = []

    def of(self, name: str, read: Callable[[str], Any]) -> Any:
        if name not in self._given:
            return None
        try:
            return read(self._given[name])
        except ValueError as fault:
            self.faults.append(f"{_PREFIX}{name}: {fault}")
            return None

    def of_exporter(self, name: str, read: Callable[[str], Any]) -> Any:
        """The value of a variable that exists for traces alone too: the one for traces counts where it is set."""
        own = f"EXPORTER_OTLP_TRACES_{name}"
        return self.of(own if own in self._given else f"EXPORTER_OTLP_{name}", read)

    def endpoint(self) -> str | None:
        """The whole address. The variable for traces alone is taken as it is; to the other one the path is added."""
        whole: str | None = self.of("EXPORTER_OTLP_TRACES_ENDPOINT", _url)
        base: str | None = self.of("EXPORTER_OTLP_ENDPOINT", _url)
        if "EXPORTER_OTLP_TRACES_ENDPOINT" in self._given or base is None:
            return whole
        return base.rstrip("/") + _PATH


def _url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        raise ValueError("expected an http:// or https:// URL without a user; headers have a variable of their own")
    if parts.query or parts.fragment or not text.isascii() or not text.isprintable():
        raise ValueError("expected a URL without a query")
    return text


def _pairs(text: str) -> tuple[tuple[str, str], ...]:
    """`key=value,key=value`, with percent-encoded values, as W3C Baggage has it."""
    pairs = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        key, equals, value = part.partition("=")
        # No header's value begins or ends with a blank, and the message of one that does would have the value.
        value = unquote(value.strip()).strip()
        if not (equals and key.strip().isascii() and key.strip().isprintable() and value.isprintable()):
            raise ValueError("expected key=value pairs, comma-separated, with percent-encoded values")
        pairs.append((key.strip(), value))
    return tuple(pairs)


def _seconds(text: str) -> float:
    return _count(text) / 1000


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text[:9]) <= _MOST:
        raise ValueError(f"expected a whole number from 1 to {_MOST}")
    return int(text)


def _ratio(text: str) -> float:
    try:
        ratio = float(text)
    except ValueError:
        ratio = -1
    if not 0 <= ratio <= 1:
        raise ValueError("expected a number from 0 to 1")
    return ratio


def _sampler(text: str) -> str:
    if text not in sampling.NAMES:
        raise ValueError(f"expected one of {', '.join(sampling.NAMES)}")
    return text


def _gzip(text: str) -> bool:
    if text not in ("gzip", "none"):
        raise ValueError("expected gzip or none")
    return text == "gzip"


def _file(text: str) -> Path:
    file = Path(text).expanduser()
    if not file.is_file():
        raise ValueError("there is no such file")
    return file


def _protocol(text: str) -> None:
    if text != "http/protobuf":
        raise ValueError("expected http/protobuf, the only protocol here; collectors take it on port 4318")


def _exporter(text: str) -> None:
    if text != "otlp":
        raise ValueError("expected otlp or none")
