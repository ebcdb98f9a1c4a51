"""OpenTelemetry's variables: read as everybody reads them, and never shown."""

from pathlib import Path

import pytest

from app.core.settings import InvalidSettings
from app.core.tracing.settings import TracingSettings
from tests.support.together import together

BASE = "https://collector.example.com:4318"


@together(
    "environ",
    [
        {},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": ""},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "  "},
        {"OTEL_SERVICE_NAME": "x", "OTEL_TRACES_SAMPLER": "nonsense", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": BASE, "OTEL_SDK_DISABLED": "true"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": BASE, "OTEL_TRACES_EXPORTER": "none"},
    ],
)
def test_nothing_is_traced_unless_an_endpoint_is_named(environ: dict[str, str]) -> None:
    assert TracingSettings.load(environ) is None


def test_all_variables_are_read(tmp_path: Path) -> None:
    authority = tmp_path / "ca.pem"
    authority.write_text("")
    read = TracingSettings.load(
        {
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"{BASE}/base/",
            "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20abc, x-tenant = seven",
            "OTEL_EXPORTER_OTLP_TIMEOUT": "2500",
            "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip",
            "OTEL_EXPORTER_OTLP_CERTIFICATE": str(authority),
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
            "OTEL_TRACES_EXPORTER": "otlp",
            "OTEL_TRACES_SAMPLER": "parentbased_traceidratio",
            "OTEL_TRACES_SAMPLER_ARG": "0.25",
            "OTEL_SERVICE_NAME": "databases",
            "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=prod,k=a%2Cb",
            "OTEL_BSP_SCHEDULE_DELAY": "100",
            "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "10",
            "OTEL_BSP_MAX_QUEUE_SIZE": "20",
            "OTEL_METRICS_EXPORTER": "none",
        }
    )
    assert read == TracingSettings(
        endpoint=f"{BASE}/base/v1/traces",
        headers=(("authorization", "Bearer abc"), ("x-tenant", "seven")),
        timeout=2.5,
        gzip=True,
        certificate=authority,
        sampler="parentbased_traceidratio",
        ratio=0.25,
        service_name="databases",
        resource=(("deployment.environment.name", "prod"), ("k", "a,b")),
        delay=0.1,
        batch=10,
        queue=20,
    )


def test_variables_for_traces_alone_count_first() -> None:
    read = TracingSettings.load(
        {
            "OTEL_EXPORTER_OTLP_ENDPOINT": BASE,
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://traces:4318/own/path",
            "OTEL_EXPORTER_OTLP_HEADERS": "a=1",
            "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "b=2",
            "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
            "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf",
        }
    )
    assert read is not None
    assert (read.endpoint, read.headers) == ("http://traces:4318/own/path", (("b", "2"),))


def test_a_header_has_no_blanks_around_it() -> None:
    """HTTP takes none, and the error of one that has them would show the value."""
    read = TracingSettings.load(
        {"OTEL_EXPORTER_OTLP_ENDPOINT": BASE, "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20key%20"}
    )
    assert read is not None
    assert read.headers == (("authorization", "Bearer key"),)


@together(
    ("name", "value"),
    [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4317"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://user:hush-hush@collector"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://collector/?key=hush-hush"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "hush-hush"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "a=hush-hush%0d%0aevil: yes"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "0"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "brotli"),
        ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/nowhere/hush-hush.pem"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_TRACES_EXPORTER", "zipkin"),
        ("OTEL_TRACES_SAMPLER", "xray"),
        ("OTEL_TRACES_SAMPLER_ARG", "1.5"),
        ("OTEL_TRACES_SAMPLER_ARG", "nan"),
        ("OTEL_RESOURCE_ATTRIBUTES", "nothing"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "-1"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "99999999999"),
    ],
)
def test_an_unusable_value_is_named_and_not_shown(name: str, value: str) -> None:
    with pytest.raises(InvalidSettings) as refused:
        TracingSettings.load({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": BASE, name: value})
    assert str(refused.value).startswith(f"{name}: ")
    assert "hush-hush" not in str(refused.value)


def test_all_faults_are_reported_at_once() -> None:
    environ = {"OTEL_EXPORTER_OTLP_ENDPOINT": BASE, "OTEL_TRACES_SAMPLER": "x", "OTEL_BSP_SCHEDULE_DELAY": "y"}
    with pytest.raises(InvalidSettings) as refused:
        TracingSettings.load(environ)
    assert len(str(refused.value).splitlines()) == 2


def test_headers_are_not_shown() -> None:
    read = TracingSettings.load(
        {"OTEL_EXPORTER_OTLP_ENDPOINT": BASE, "OTEL_EXPORTER_OTLP_HEADERS": "api-key=hush-hush"}
    )
    assert "hush-hush" not in f"{read!r} {read}"
