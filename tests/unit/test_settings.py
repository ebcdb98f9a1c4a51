"""Settings: each name read as what it is, and every fault told at once."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.core.settings import InvalidSettings, Settings
from tests.support.together import together

EXAMPLES: dict[str, tuple[str, Any]] = {
    "home": ("/srv/headwater", Path("/srv/headwater")),
    "api_port": ("9000", 9000),
    "temporal_port": ("1", 1),
    "temporal_ui_port": ("65535", 65535),
    "regions": ("us-east-1, eu-west-1", ("us-east-1", "eu-west-1")),
    "connection_watch_seconds": ("2.5", 2.5),
    "connection_overcommit": ("3", 3),
    "host_capacity": ("5000", 5000),
    "mysqld": ("/usr/sbin/mysqld", Path("/usr/sbin/mysqld")),
    "mysqldump": ("/opt/mysql/bin/mysqldump", Path("/opt/mysql/bin/mysqldump")),
    "mariadb_dump": ("/opt/mariadb/bin/mariadb-dump", Path("/opt/mariadb/bin/mariadb-dump")),
    "postgres_bin": ("/opt/postgres/bin", Path("/opt/postgres/bin")),
    "log_file_bytes": ("1000000", 1_000_000),
    "control_dsn": ("postgresql://u:p@h/d", "postgresql://u:p@h/d"),
    "control_admin_dsn": ("postgresql://owner:p@h/d", "postgresql://owner:p@h/d"),
    "temporal_address": ("temporal:7233", "temporal:7233"),
    "temporal_namespace": ("prod", "prod"),
    "temporal_ui_url": ("https://temporal.example", "https://temporal.example"),
    "temporal_tls": ("true", True),
    "temporal_tls_ca_file": (__file__, Path(__file__)),
    "temporal_tls_cert_file": (__file__, Path(__file__)),
    "temporal_tls_key_file": (__file__, Path(__file__)),
    "temporal_tls_server_name": ("temporal.example", "temporal.example"),
    "temporal_api_key": ("a-key", "a-key"),
    "secret_keys": ("k1:AAAA", "k1:AAAA"),
    "log_format": ("console", "console"),
    "log_level": ("warning", "warning"),
    "backup_hour_seconds": ("6", 6.0),
    "final_backups": ("false", False),
    "backups_per_host": ("1", 1),
    "backups_per_team": ("3", 3),
    "backup_tests_per_region": ("2", 2),
    "plans_file": ("/etc/headwater/plans.toml", Path("/etc/headwater/plans.toml")),
    "metrics_host": ("0.0.0.0", "0.0.0.0"),
    "metrics_port": ("9464", 9464),
    "api_host": ("0.0.0.0", "0.0.0.0"),
    "api_keys_per_user": ("5", 5),
    "teams_per_user": ("3", 3),
    "members_per_team": ("4", 4),
    "invitations_per_team": ("5", 5),
    "api_connections": ("512", 512),
    "api_leave_seconds": ("5", 5.0),
    "request_head_timeout_seconds": ("5", 5.0),
    "request_body_timeout_seconds": ("5", 5.0),
    "requests_in_flight_per_key": ("10", 10),
    "requests_in_flight_per_address": ("20", 20),
    "event_streams": ("500", 500),
    "event_streams_per_key": ("50", 50),
    "event_streams_per_team": ("60", 60),
    "event_stream_comment_seconds": ("5", 5.0),
    "console": ("off", False),
    "oidc_issuer": ("https://id.example.com", "https://id.example.com"),
    "oidc_client_id": ("headwater", "headwater"),
    "oidc_client_secret": ("secret", "secret"),
    "public_url": ("https://db.example.com", "https://db.example.com"),
    "sign_in_link_seconds": ("60", 60.0),
    "session_idle_seconds": ("3600", 3600),
    "session_seconds": ("86400", 86_400),
    "session_requests_per_minute": ("100", 100),
    "trusted_proxies": ("10.0.0.0/8,::1", ("10.0.0.0/8", "::1")),
    "idempotency_ttl_seconds": ("60", 60.0),
    "idempotency_lease_seconds": ("0.5", 0.5),
    "usage_period_seconds": ("60", 60),
    "usage_retention_seconds": ("864000", 864_000.0),
    "audit_refusals_per_hour": ("100", 100),
    "audit_seal_seconds": ("1", 1.0),
    "audit_unsealed_seconds": ("60", 60.0),
    "audit_head_seconds": ("60", 60.0),
    "revocation_timeout_seconds": ("1", 1.0),
    "limits_timeout_seconds": ("1", 1.0),
    "pool_size": ("0", 0),
    "pool_max_age_seconds": ("3600", 3600.0),
    "pool_verify_seconds": ("60", 60.0),
    "deletion_grace_seconds": ("0", 0.0),
    "webhook_retry_schedule": ("0,5,300", (0.0, 5.0, 300.0)),
    "webhook_allow_cidrs": ("127.0.0.0/8", ("127.0.0.0/8",)),
    "webhook_ca_file": ("/ca.pem", Path("/ca.pem")),
    "webhook_timeout_seconds": ("7.5", 7.5),
    "webhook_lookup_timeout_seconds": ("1", 1.0),
    "webhook_endpoints_per_team": ("3", 3),
    "webhook_concurrency": ("3", 3),
    "webhook_probe_seconds": ("0.5", 0.5),
    "webhook_longest_probe_seconds": ("60", 60),
    "webhook_probes_per_second": ("0.5", 0.5),
    "webhook_secret_overlap_seconds": ("0", 0),
    "quota_interval_seconds": ("1", 1.0),
    "session_idle_transaction_seconds": ("60", 60.0),
    "session_transaction_seconds": ("600", 600.0),
    "session_memory_mb": ("64", 64),
    "session_shared_percent": ("80", 80),
    "postgres_extensions": ("vector, bloom", ("vector", "bloom")),
    "refill_interval_seconds": ("1", 1.0),
    "reconcile_interval_seconds": ("1", 1.0),
    "retention_seconds": ("86400", 86400.0),
    "query_retention_seconds": ("86400", 86400.0),
    "operation_retention_seconds": ("86400", 86400.0),
    "orphan_age_seconds": ("0", 0.0),
    "orphan_removal": ("false", False),
    "sweep_interval_seconds": ("1", 1.0),
    "backup_store": ("s3://bucket/prefix", "s3://bucket/prefix"),
    "backup_store_timeout_seconds": ("30", 30.0),
    "backup_object_lock": ("compliance", "compliance"),
    "backup_age_recipient": ("age1", "age1"),
    "backup_age_identity_file": (__file__, Path(__file__)),
    "nl_model": ("gpt-4.1", "gpt-4.1"),
    "nl_max_rows": ("10", 10),
    "nl_timeout_seconds": ("1", 1.0),
    "query_timeout_seconds": ("1", 1.0),
}
COMPANIONS = {
    "temporal_tls_cert_file": "temporal_tls_key_file",
    "temporal_tls_key_file": "temporal_tls_cert_file",
}
"""One is nothing without the other."""
WRONG = [
    ("API_PORT", "0"),
    ("API_PORT", "65536"),
    ("API_PORT", "http"),
    ("TEMPORAL_PORT", "1.5"),
    ("REGIONS", ","),
    ("REGIONS", "us_east"),
    ("REGIONS", "US-EAST-1"),
    ("REGIONS", "süd-1"),
    ("REGIONS", "us-east-1,eu-west-1,us-east-1"),
    ("LOG_FORMAT", "xml"),
    ("LOG_LEVEL", "loud"),
    ("LOG_FILE_BYTES", "0"),
    ("TRUSTED_PROXIES", "10.0.0.300"),
    ("WEBHOOK_ALLOW_CIDRS", "everything"),
    ("IDEMPOTENCY_TTL_SECONDS", "0"),
    ("IDEMPOTENCY_LEASE_SECONDS", "-1"),
    ("REVOCATION_TIMEOUT_SECONDS", "soon"),
    ("IDEMPOTENCY_TTL_SECONDS", "nan"),
    ("IDEMPOTENCY_TTL_SECONDS", "inf"),
    ("DELETION_GRACE_SECONDS", "-1"),
    ("DELETION_GRACE_SECONDS", "nan"),
    ("DELETION_GRACE_SECONDS", "1e10"),
    ("RETENTION_SECONDS", "1e10"),
    ("WEBHOOK_RETRY_SCHEDULE", "0,1e10"),
    ("POOL_SIZE", "-1"),
    ("POOL_SIZE", "1.5"),
    ("WEBHOOK_RETRY_SCHEDULE", "0,-5"),
    ("WEBHOOK_RETRY_SCHEDULE", "0,x"),
    ("WEBHOOK_RETRY_SCHEDULE", "0,nan"),
    ("NL_MAX_ROWS", "0"),
    ("QUERY_TIMEOUT_SECONDS", "0"),
    ("SESSION_IDLE_TRANSACTION_SECONDS", "0"),
    ("SESSION_TRANSACTION_SECONDS", "nan"),
    ("SESSION_MEMORY_MB", "-1"),
    ("SESSION_SHARED_PERCENT", "0"),
    ("SESSION_SHARED_PERCENT", "101"),
    ("METRICS_PORT", "null"),
    ("WEBHOOK_RETRY_SCHEDULE", ","),
    ("PUBLIC_URL", "https://db.example.com/path"),
    ("OIDC_ISSUER", "id.example.com"),
    ("BACKUP_OBJECT_LOCK", "on"),
]


def load(**variables: str) -> Settings:
    return Settings.load({f"HEADWATER_{name.upper()}": text for name, text in variables.items()})


def test_the_examples_cover_every_setting() -> None:
    assert EXAMPLES.keys() == {field.name for field in msgspec.structs.fields(Settings)}


def test_every_number_has_bounds() -> None:
    unbounded = {int, float, int | None, float | None, tuple[int, ...], tuple[float, ...]}
    assert [field.name for field in msgspec.structs.fields(Settings) if field.type in unbounded] == []


@together("name", EXAMPLES)
def test_each_setting(name: str) -> None:
    text, value = EXAMPLES[name]
    companion = COMPANIONS.get(name)
    settings = load(**{name: f" {text} "}, **({companion: EXAMPLES[companion][0]} if companion else {}))
    assert getattr(settings, name) == value
    given = {name, companion}
    others = {field: value for field, value in msgspec.structs.asdict(settings).items() if field not in given}
    defaults = msgspec.structs.asdict(Settings())
    assert others == {field: defaults[field] for field in others}


@together("name", EXAMPLES)
def test_an_empty_value_counts_as_not_given(name: str) -> None:
    assert load(**{name: "  "}) == Settings()


@together(("name", "text"), WRONG)
def test_a_wrong_value_names_its_variable(name: str, text: str) -> None:
    with pytest.raises(InvalidSettings, match=f"^HEADWATER_{name}: "):
        load(**{name: text})


def test_an_unknown_name() -> None:
    with pytest.raises(InvalidSettings, match="HEADWATER_POOLSIZE: no such setting; did you mean HEADWATER_POOL_SIZE"):
        load(poolsize="3")
    with pytest.raises(InvalidSettings, match=r"HEADWATER_COLOUR: no such setting$"):
        load(colour="3")


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("pool_size", "few", "expected a whole number from 0 to 1000000000"),
        ("query_timeout_seconds", "soon", "expected a number above 0, at most 1000000000"),
        ("orphan_removal", "maybe", "expected true or false, or on or off"),
        ("webhook_retry_schedule", "0,soon", "expected numbers from 0 to 1000000000, comma-separated"),
        ("regions", "us-east-1,us-east-1", "expected region codes such as us-east-1, each once"),
        ("log_level", "loud", "expected one of debug, info, warning, error"),
    ],
)
def test_a_wrong_value_is_reported_in_an_operators_words(name: str, text: str, words: str) -> None:
    with pytest.raises(InvalidSettings) as fault:
        load(**{name: text})
    assert str(fault.value) == f"HEADWATER_{name.upper()}: {words}"


def test_other_peoples_variables_are_none_of_ours() -> None:
    assert Settings.load({"PATH": "/bin", "HEADWATERS": "x", "headwater_home": "x"}) == Settings()


def test_all_faults_at_once() -> None:
    with pytest.raises(InvalidSettings) as faults:
        load(api_port="x", pool_size="-1", colour="red", nl_model="fine")
    lines = str(faults.value).splitlines()
    assert [line.partition(":")[0] for line in lines] == [
        "HEADWATER_API_PORT",
        "HEADWATER_COLOUR",
        "HEADWATER_POOL_SIZE",
    ]


def test_a_secret_is_not_repeated_in_a_fault() -> None:
    with pytest.raises(InvalidSettings) as faults:
        load(control_dsn="postgresql://u:hunter2@h/d", api_port="x")
    assert "hunter2" not in str(faults.value)
