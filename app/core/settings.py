"""All settings of all processes, read once at an entry point and passed down.

Each is an environment variable named `HEADWATER_…`. An unusable value or an unknown name is an error, and all errors
are reported together, so that a misspelt setting is never ignored.
"""

import ipaddress
import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import msgspec

from app.contracts.queues import is_region_code
from app.core.logging import LEVELS

PREFIX = "HEADWATER_"


class InvalidSettings(Exception):
    """One or more settings can't be used; the message has a line for each."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Field `name` is read from `HEADWATER_NAME`. Durations are in seconds."""

    home: Path = Path(".headwater")
    """Where the embedded stack keeps its data, and where the command line finds `stack.json`."""

    # The embedded stack
    api_port: int = 8000
    temporal_port: int = 7233
    temporal_ui_port: int = 8233
    regions: tuple[str, ...] = ("us-east-1",)
    connection_watch_seconds: float = 5
    """How often the open connections of each engine host are counted; every second while they are about to be short."""
    connection_overcommit: int = 10
    """How often each connection of an embedded engine host may be allocated to databases; 1 for strict."""
    host_capacity: int = 1000
    """Databases on each embedded engine host."""
    mysqld: Path | None = None
    """The MySQL or MariaDB server program, in place of the one on the PATH."""
    mysqldump: Path | None = None
    """MySQL's dump tool, of the hosts' version or newer, in place of the one on the PATH or beside the server."""
    mariadb_dump: Path | None = None
    """The same of MariaDB's, `mariadb-dump`."""
    postgres_bin: Path | None = None
    """The folder of `postgres` and `initdb`, in place of the embedded package's."""
    log_file_bytes: int = 67_108_864
    """The maximum size of a log of the embedded stack. A larger one replaces the previous copy beside it."""

    # Every process
    control_dsn: str | None = None
    """Our own PostgreSQL, as the role with which the service reads and writes rows. The embedded stack sets it for its
    processes."""
    control_admin_dsn: str | None = None
    """The same as the owner of the tables, for `headwater migrate` alone: API and workers never use it."""
    temporal_address: str = "127.0.0.1:7233"
    temporal_namespace: str = "default"
    temporal_ui_url: str | None = None
    """The address of Temporal's web pages, for the links that operators get. `http://` or `https://`."""
    temporal_tls: bool = False
    """Whether to reach Temporal over TLS. Setting any of the five below implies it."""
    temporal_tls_ca_file: Path | None = None
    """The authorities that may sign Temporal's certificate, in PEM; by default those that this machine trusts."""
    temporal_tls_cert_file: Path | None = None
    temporal_tls_key_file: Path | None = None
    """The key of our own certificate, for mutual TLS."""
    temporal_tls_server_name: str | None = None
    """The name in Temporal's certificate, if it isn't the address."""
    temporal_api_key: str | None = None
    secret_keys: str | None = None
    """`id:base64` pairs of 32-byte keys, comma-separated. The first one seals, all of them open."""
    log_format: str = "json"
    """`json`, or `console` for a person."""
    log_level: str = "info"
    """The lowest level that is logged: `debug`, `info`, `warning` or `error`."""
    plans_file: Path | None = None
    """A TOML file with plans in place of the built-in ones. All processes need the same."""
    metrics_host: str = "127.0.0.1"
    metrics_port: int | None = None
    """The port of the process's metrics; none by default. The API accepts its own port too."""

    postgres_extensions: tuple[str, ...] = ()
    """Extensions that every new PostgreSQL database gets, of those that tenants can't create themselves."""

    # The API
    api_host: str = "127.0.0.1"
    api_connections: int = 4096
    """The maximum of open connections, idle ones included. More wait to be accepted."""
    api_leave_seconds: float = 0
    """How long the API serves on after the signal to stop, while `/health/ready` answers 503: long enough for a proxy
    to notice and to send its requests elsewhere."""
    console: bool = True
    """Whether the API serves the console, and people sign in to it. `off` takes it away."""
    api_keys_per_user: int = 100
    """Keys that are not revoked. Operators may make more."""
    teams_per_user: int = 20
    """That a person may be in."""
    members_per_team: int = 200
    invitations_per_team: int = 50
    """That are open."""
    request_head_timeout_seconds: float = 30
    """From the opening of a connection, or the last answer on it, to the end of the next request's head. Then it is
    closed."""
    request_body_timeout_seconds: float = 30
    """From the end of a request's head to the end of its body. Then the answer is 408."""
    requests_in_flight_per_key: int = 1000
    """In one process, including requests that wait for something."""
    requests_in_flight_per_address: int = 2000
    """The same for one client address."""
    event_streams: int = 2500
    """The maximum of open event streams in one process. They are connections too."""
    event_streams_per_key: int = 1000
    event_streams_per_team: int = 1000
    event_stream_comment_seconds: float = 15
    """How long an event stream is silent before it sends a comment."""
    trusted_proxies: tuple[str, ...] = ()
    """Networks of proxies that are believed which address a request comes from, and whether over TLS."""
    public_url: str | None = None
    """Where people reach the API, such as `https://databases.example.com`; by default what each request says."""
    oidc_issuer: str | None = None
    """The OpenID Connect provider through which people may sign in, by the URL that it calls itself."""
    oidc_client_id: str | None = None
    """Ours there. Its redirect URI is `/console/sign-in` at our own address."""
    oidc_client_secret: str | None = None
    """None for a public client: PKCE is used with both."""
    sign_in_link_seconds: float = 600
    """How long a link to sign in with can be used."""
    session_idle_seconds: int = 43_200
    """After so long without a request a person who signed in does it again."""
    session_seconds: int = 1_209_600
    """The same whatever they did."""
    session_requests_per_minute: int = 600
    """A person's, by all of their sessions together."""
    idempotency_ttl_seconds: float = 86_400
    idempotency_lease_seconds: float = 10
    """How long an Idempotency-Key stays in flight after its request's process died."""
    audit_refusals_per_hour: int = 1000
    """How many refusals of one user leave an event of their own in the audit log in an hour; the others are counted."""
    audit_seal_seconds: float = 10
    """How often the events of the audit log are sealed."""
    audit_unsealed_seconds: float = 900
    """How old an event may become before it is sealed: `headwater audit verify` fails beyond it."""
    audit_head_seconds: float = 3600
    """How often the newest seal is kept outside of our own database, with the backups."""
    revocation_timeout_seconds: float = 30
    """How long a DELETE waits for the engine to end all access before it answers 503, and an undeletion for the engine
    to let the tenant in before it answers that access follows."""
    limits_timeout_seconds: float = 5
    """How long a change of limits waits for the engine before it answers that they will follow."""

    # Workflows
    pool_size: int = 3
    """Databases kept ready in each region for each engine; 0 for none."""
    pool_max_age_seconds: float = 604_800
    """The age at which an unclaimed database is replaced."""
    pool_verify_seconds: float = 300
    """How often a waiting database is verified again."""
    deletion_grace_seconds: float = 86_400
    webhook_retry_schedule: tuple[float, ...] = (0, 5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400)
    """Seconds to wait before each attempt to deliver a webhook."""
    webhook_allow_cidrs: tuple[str, ...] = ()
    """Networks that webhooks may be sent to although they are not public."""
    webhook_ca_file: Path | None = None
    """Authorities that may sign receivers' certificates, in addition to those that this machine trusts."""
    webhook_endpoints_per_team: int = 50
    """The maximum of active endpoints."""
    webhook_timeout_seconds: float = 15
    """The time limit of a delivery attempt, from the name's look-up to the response."""
    webhook_lookup_timeout_seconds: float = 3
    """How long the creation of an endpoint waits for the look-up of its name, which may also fail."""
    webhook_concurrency: int = 8
    """Concurrent attempts for one endpoint in one worker."""
    webhook_probe_seconds: float = 5
    """The first pause after a receiver hung; each further one is three times as long."""
    webhook_longest_probe_seconds: float = 300
    """The longest pause."""
    webhook_probes_per_second: float = 2
    """Probes that a worker begins, of all receivers that hang together; those that are answered don't count."""
    webhook_secret_overlap_seconds: float = 86_400
    """How long a replaced signing secret still signs beside the new one."""
    quota_interval_seconds: float = 60
    """How often storage and use are measured. A tenant can exceed its limit for that long."""
    session_idle_transaction_seconds: float = 3600
    """How long a tenant's session may be idle in an open transaction."""
    session_transaction_seconds: float = 86_400
    """How long a tenant's session may keep one transaction open."""
    session_memory_mb: int = 1024
    """The memory that a tenant's session may use, on servers that report it: MySQL and MariaDB."""
    session_shared_percent: int = 50
    """When this share of a host's locks or prepared statements is in use, the sessions that hold the most are ended."""
    refill_interval_seconds: float = 30
    reconcile_interval_seconds: float = 300
    sweep_interval_seconds: float = 600
    retention_seconds: float = 2_592_000
    """How long events and deliveries are kept after they are finished."""
    query_retention_seconds: float = 7_776_000
    """How long records of questions are kept."""
    operation_retention_seconds: float = 7_776_000
    """How long operations are kept after their end: longer than Temporal keeps their workflows."""
    usage_period_seconds: int = 3600
    """The ledger's period. All workers need the same."""
    usage_retention_seconds: float = 34_560_000
    """How long the ledger is kept, in whole months."""
    orphan_age_seconds: float = 86_400
    """How long an orphan on a host is only reported before it is removed."""
    orphan_removal: bool = True
    """Whether orphans are removed at all."""

    # Backups
    backup_hour_seconds: float = 3600
    """What policies of backups count in; a day is 24 of them. Shorter in tests alone."""
    final_backups: bool = True
    """Whether the data of a deleted database is destroyed only after a last backup of it, where its policy is on."""
    backups_per_host: int = 3
    """Backups under way at once on one engine host."""
    backups_per_team: int = 2
    backup_tests_per_region: int = 1
    """Restore tests by schedule under way at once."""
    backup_store: str | None = None
    """`file:///folder` or `s3://bucket/prefix`; by default the folder `backups` in `home`. For S3 the usual AWS
    variables apply. All processes need the same."""
    backup_store_timeout_seconds: float = 120
    """How long one object of the store may take to be written or read, repetitions included."""
    backup_object_lock: str = "off"
    """`governance` or `compliance`: S3 keeps each backup until it expires, and nobody deletes it before. The bucket
    needs Object Lock."""
    backup_age_recipient: str | None = None
    """An age recipient, `age1…`: backups are encrypted so that only its identity reads them."""
    backup_age_identity_file: Path | None = None
    """Identities of age recipients, one a line, for restores of such backups."""

    # Natural-language queries
    nl_model: str | None = None
    nl_max_rows: int = 1000
    nl_timeout_seconds: float = 30
    query_timeout_seconds: float = 30

    @property
    def orphan_age(self) -> timedelta | None:
        """None when orphans are not removed."""
        return timedelta(seconds=self.orphan_age_seconds) if self.orphan_removal else None

    @classmethod
    def load(cls, environ: Mapping[str, str]) -> "Settings":
        """Raises `InvalidSettings`, which names every variable that is unknown or has an unusable value. An empty value
        counts as not set."""
        fields = {field.name: field.type for field in msgspec.structs.fields(cls)}
        values: dict[str, Any] = {}
        faults: list[str] = []
        for variable, text in sorted(environ.items()):
            if not variable.startswith(PREFIX):
                continue
            name = variable.removeprefix(PREFIX).lower()
            if name not in fields:
                near = get_close_matches(name, fields, n=1)
                hint = f"; did you mean {PREFIX}{near[0].upper()}?" if near else ""
                faults.append(f"{variable}: no such setting{hint}")
            elif text.strip():
                try:
                    values[name] = _check(name, _convert(text.strip(), fields[name]))
                except ValueError as fault:
                    faults.append(f"{variable}: {fault}")
        if ("temporal_tls_cert_file" in values) != ("temporal_tls_key_file" in values):
            faults.append("HEADWATER_TEMPORAL_TLS_CERT_FILE and HEADWATER_TEMPORAL_TLS_KEY_FILE go together")
        if faults:
            raise InvalidSettings("\n".join(faults))
        return cls(**values)


_EXPECTED: dict[Any, str] = {
    int: "expected a whole number",
    float: "expected a number of seconds",
    bool: "expected true or false, or on or off",
    int | None: "expected a whole number",
    tuple[float, ...]: "expected numbers of seconds, comma-separated",
}
"""In place of msgspec's messages, which name Python's types."""


def _convert(text: str, kind: Any) -> Any:
    try:
        return _converted(text, kind)
    except msgspec.ValidationError as fault:
        raise ValueError(_EXPECTED.get(kind, str(fault))) from None


def _converted(text: str, kind: Any) -> Any:
    if kind in (tuple[str, ...], tuple[float, ...]):
        parts = [part.strip() for part in text.split(",") if part.strip()]
        return msgspec.convert(parts, kind, strict=False)
    if kind in (Path, Path | None):
        return Path(text).expanduser()
    if kind is bool:
        text = {"on": "true", "off": "false"}.get(text.lower(), text)
    return msgspec.convert(text, kind, strict=False)


def _check(name: str, value: Any) -> Any:
    for names, wrong, message in _RULES:
        if name in names and wrong(value):
            raise ValueError(message)
    if (name.startswith("temporal_tls_") or name == "backup_age_identity_file") and not _is_there(value):
        raise ValueError("there is no such file")
    if name in ("trusted_proxies", "webhook_allow_cidrs"):
        for network in value:
            ipaddress.ip_network(network, strict=False)
    if name == "public_url":
        # As browsers write an origin (RFC 6454, section 6.2).
        return value.removesuffix(":443" if value.startswith("https:") else ":80")
    return value


def _is_there(value: Any) -> bool:
    return not isinstance(value, Path) or value.is_file()


_PORTS = {"api_port", "temporal_port", "temporal_ui_port", "metrics_port"}
_POSITIVE = {
    "idempotency_ttl_seconds",
    "idempotency_lease_seconds",
    "audit_refusals_per_hour",
    "audit_seal_seconds",
    "audit_unsealed_seconds",
    "audit_head_seconds",
    "revocation_timeout_seconds",
    "limits_timeout_seconds",
    "sign_in_link_seconds",
    "session_idle_seconds",
    "session_seconds",
    "session_requests_per_minute",
    "api_keys_per_user",
    "teams_per_user",
    "members_per_team",
    "invitations_per_team",
    "api_connections",
    "request_head_timeout_seconds",
    "request_body_timeout_seconds",
    "requests_in_flight_per_key",
    "requests_in_flight_per_address",
    "event_streams",
    "event_streams_per_key",
    "event_streams_per_team",
    "event_stream_comment_seconds",
    "log_file_bytes",
    "webhook_timeout_seconds",
    "webhook_lookup_timeout_seconds",
    "webhook_concurrency",
    "webhook_endpoints_per_team",
    "webhook_probe_seconds",
    "webhook_longest_probe_seconds",
    "webhook_probes_per_second",
    "quota_interval_seconds",
    "refill_interval_seconds",
    "pool_max_age_seconds",
    "pool_verify_seconds",
    "reconcile_interval_seconds",
    "sweep_interval_seconds",
    "retention_seconds",
    "query_retention_seconds",
    "operation_retention_seconds",
    "usage_retention_seconds",
    "backup_hour_seconds",
    "connection_watch_seconds",
    "connection_overcommit",
    "host_capacity",
    "backups_per_host",
    "backups_per_team",
    "backup_tests_per_region",
    "backup_store_timeout_seconds",
    "nl_max_rows",
    "nl_timeout_seconds",
    "query_timeout_seconds",
}
_NOT_NEGATIVE = {
    "api_leave_seconds",
    "pool_size",
    "deletion_grace_seconds",
    "orphan_age_seconds",
    "webhook_secret_overlap_seconds",
}
_ORIGIN = re.compile(r"https?://[a-z0-9.-]+(:[0-9]{1,5})?|https?://\[[0-9a-f:]+\](:[0-9]{1,5})?")
_LARGEST = 1_000_000_000
"""About 31 years, so that the resulting times can still be represented."""
_RULES: tuple[tuple[set[str], Callable[[Any], bool], str], ...] = (
    (_PORTS, lambda port: not 1 <= port <= 65_535, "expected a port from 1 to 65535"),
    # Written so that "nan" is rejected too.
    (_POSITIVE, lambda number: not 0 < number <= _LARGEST, f"expected a number above 0, at most {_LARGEST}"),
    (_NOT_NEGATIVE, lambda number: not 0 <= number <= _LARGEST, f"expected a number from 0 to {_LARGEST}"),
    ({"usage_period_seconds"}, lambda period: not 1 <= period <= 86_400, "expected seconds from 1 to 86400"),
    ({"regions"}, lambda regions: not regions, "expected at least one region"),
    ({"regions"}, lambda regions: len(set(regions)) < len(regions), "expected each region once"),
    ({"regions"}, lambda regions: not all(map(is_region_code, regions)), "expected region codes such as us-east-1"),
    (
        {"webhook_retry_schedule"},
        lambda waits: not waits or not all(0 <= wait <= _LARGEST for wait in waits),
        f"expected seconds from 0 to {_LARGEST}, comma-separated",
    ),
    ({"public_url"}, lambda url: not _ORIGIN.fullmatch(url), "expected https://host or http://host, with no path"),
    ({"oidc_issuer"}, lambda url: not url.startswith(("https://", "http://")), "expected a URL"),
    ({"log_format"}, lambda form: form not in ("json", "console"), "expected json or console"),
    (
        {"backup_object_lock"},
        lambda mode: mode not in ("off", "governance", "compliance"),
        "expected off, governance or compliance",
    ),
    ({"log_level"}, lambda level: level not in LEVELS, f"expected one of {', '.join(LEVELS)}"),
)
