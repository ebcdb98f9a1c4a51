"""All settings of all processes, read once at an entry point and passed down.

Each is an environment variable named `HEADWATER_…`. An unusable value or an unknown name is an error, and all errors
are reported together, so that a misspelt setting is never ignored.
"""

import ipaddress
from collections.abc import Mapping
from datetime import timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import msgspec

from app.contracts.queues import is_region_code
from app.core.setting_values import (
    LogFormat,
    LogLevel,
    NonNegativeFloat,
    NonNegativeFloats,
    NonNegativeInt,
    ObjectLock,
    Origin,
    Percent,
    Port,
    PositiveFloat,
    PositiveInt,
    SecondsOfADay,
    Url,
    read,
)

PREFIX = "HEADWATER_"


class InvalidSettings(Exception):
    """One or more settings can't be used; the message has a line for each."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Field `name` is read from `HEADWATER_NAME`. Durations are in seconds."""

    home: Path = Path(".headwater")
    """Where the embedded stack keeps its data, and where the command line finds `stack.json`."""

    # The embedded stack
    api_port: Port = 8000
    temporal_port: Port = 7233
    temporal_ui_port: Port = 8233
    regions: tuple[str, ...] = ("us-east-1",)
    connection_watch_seconds: PositiveFloat = 5
    """How often the open connections of each engine host are counted; every second while they are about to be short."""
    connection_overcommit: PositiveInt = 10
    """How often each connection of an embedded engine host may be allocated to databases; 1 for strict."""
    host_capacity: PositiveInt = 1000
    """Databases on each embedded engine host."""
    mysqld: Path | None = None
    """The MySQL or MariaDB server program, in place of the one on the PATH."""
    mysqldump: Path | None = None
    """MySQL's dump tool, of the hosts' version or newer, in place of the one on the PATH or beside the server."""
    mariadb_dump: Path | None = None
    """The same for MariaDB's dump tool, `mariadb-dump`."""
    postgres_bin: Path | None = None
    """The folder of `postgres` and `initdb`, in place of the embedded package's."""
    log_file_bytes: PositiveInt = 67_108_864
    """The maximum size of a log of the embedded stack. A larger one replaces the previous copy beside it."""

    # Every process
    control_dsn: str | None = None
    """Our own PostgreSQL, as the role with which the service reads and writes rows. The embedded stack sets it for its
    processes."""
    control_admin_dsn: str | None = None
    """The same database, as the owner of its tables; for `headwater migrate` alone: API and workers never use it."""
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
    log_format: LogFormat = "json"
    """`json`, or `console` for a person."""
    log_level: LogLevel = "info"
    """The lowest level that is logged: `debug`, `info`, `warning` or `error`."""
    plans_file: Path | None = None
    """A TOML file with plans in place of the built-in ones. All processes need the same."""
    metrics_host: str = "127.0.0.1"
    metrics_port: Port | None = None
    """The port of the process's metrics; none by default. The API accepts its own port too."""

    postgres_extensions: tuple[str, ...] = ()
    """Extensions that every new PostgreSQL database gets, of those that tenants can't create themselves."""

    # The API
    api_host: str = "127.0.0.1"
    api_connections: PositiveInt = 4096
    """The maximum of open connections, idle ones included. More wait to be accepted."""
    api_leave_seconds: NonNegativeFloat = 0
    """How long the API serves on after the signal to stop, while `/health/ready` answers 503: long enough for a proxy
    to notice and to send its requests elsewhere."""
    console: bool = True
    """Whether the API serves the console, and people sign in to it. `off` takes it away."""
    api_keys_per_user: PositiveInt = 100
    """The maximum of keys that are not revoked. Operators may make more."""
    teams_per_user: PositiveInt = 20
    """The maximum of teams that a person may be in."""
    members_per_team: PositiveInt = 200
    invitations_per_team: PositiveInt = 50
    """The maximum of open invitations."""
    request_head_timeout_seconds: PositiveFloat = 30
    """The time limit from the opening of a connection, or the last answer on it, to the end of the next request's head.
    After that the connection is closed."""
    request_body_timeout_seconds: PositiveFloat = 30
    """The time limit from the end of a request's head to the end of its body. After that the answer is 408."""
    requests_in_flight_per_key: PositiveInt = 1000
    """The maximum in one process, including requests that wait for something."""
    requests_in_flight_per_address: PositiveInt = 2000
    """The same for one client address."""
    event_streams: PositiveInt = 2500
    """The maximum of open event streams in one process. They are connections too."""
    event_streams_per_key: PositiveInt = 1000
    event_streams_per_team: PositiveInt = 1000
    event_stream_comment_seconds: PositiveFloat = 15
    """How long an event stream is silent before it sends a comment."""
    trusted_proxies: tuple[str, ...] = ()
    """Networks of proxies that are believed when they say which address a request comes from, and whether over TLS."""
    public_url: Origin | None = None
    """Where people reach the API, such as `https://databases.example.com`; by default what each request says."""
    oidc_issuer: Url | None = None
    """The OpenID Connect provider through which people may sign in, by the URL that it calls itself."""
    oidc_client_id: str | None = None
    """Our client id at that provider. The redirect URI is `/console/sign-in` at our own address."""
    oidc_client_secret: str | None = None
    """The client's secret; None for a public client. PKCE is used with both kinds."""
    sign_in_link_seconds: PositiveFloat = 600
    """How long a link to sign in with can be used."""
    session_idle_seconds: PositiveInt = 43_200
    """How long a session lasts without a request. After that the person has to sign in again."""
    session_seconds: PositiveInt = 1_209_600
    """How long a session lasts at most, whatever the person does."""
    session_requests_per_minute: PositiveInt = 600
    """The maximum of a person's requests, by all of their sessions together."""
    idempotency_ttl_seconds: PositiveFloat = 86_400
    idempotency_lease_seconds: PositiveFloat = 10
    """How long an Idempotency-Key stays in flight after its request's process died."""
    audit_refusals_per_hour: PositiveInt = 1000
    """How many refusals of one user leave an event of their own in the audit log in an hour; the others are counted."""
    audit_seal_seconds: PositiveFloat = 10
    """How often the events of the audit log are sealed."""
    audit_unsealed_seconds: PositiveFloat = 900
    """How old an event may become before it is sealed: `headwater audit verify` fails beyond it."""
    audit_head_seconds: PositiveFloat = 3600
    """How often the newest seal is kept outside of our own database, with the backups."""
    revocation_timeout_seconds: PositiveFloat = 30
    """How long a DELETE waits for the engine to end all access before it answers 503, and an undeletion for the engine
    to let the tenant in before it answers that access follows."""
    limits_timeout_seconds: PositiveFloat = 5
    """How long a change of limits waits for the engine before it answers that they will follow."""

    # Workflows
    pool_size: NonNegativeInt = 3
    """Databases kept ready in each region for each engine; 0 for none."""
    pool_max_age_seconds: PositiveFloat = 604_800
    """The age at which an unclaimed database is replaced."""
    pool_verify_seconds: PositiveFloat = 300
    """How often a waiting database is verified again."""
    deletion_grace_seconds: NonNegativeFloat = 86_400
    webhook_retry_schedule: NonNegativeFloats = (0, 5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400)
    """Seconds to wait before each attempt to deliver a webhook."""
    webhook_allow_cidrs: tuple[str, ...] = ()
    """Networks that webhooks may be sent to although they are not public."""
    webhook_ca_file: Path | None = None
    """Authorities that may sign receivers' certificates, in addition to those that this machine trusts."""
    webhook_endpoints_per_team: PositiveInt = 50
    """The maximum of active endpoints."""
    webhook_timeout_seconds: PositiveFloat = 15
    """The time limit of a delivery attempt, from the name's look-up to the response."""
    webhook_lookup_timeout_seconds: PositiveFloat = 3
    """How long the creation of an endpoint waits for the look-up of its name, which may also fail."""
    webhook_concurrency: PositiveInt = 8
    """Concurrent attempts for one endpoint in one worker."""
    webhook_probe_seconds: PositiveFloat = 5
    """The first pause after a receiver hung; each further one is three times as long."""
    webhook_longest_probe_seconds: PositiveFloat = 300
    """The longest pause."""
    webhook_probes_per_second: PositiveFloat = 2
    """Probes that a worker begins, to all hanging receivers taken together; those that are answered don't count."""
    webhook_secret_overlap_seconds: NonNegativeFloat = 86_400
    """How long a replaced signing secret still signs beside the new one."""
    quota_interval_seconds: PositiveFloat = 60
    """How often storage and use are measured. A tenant can exceed its limit for that long."""
    session_idle_transaction_seconds: PositiveFloat = 3600
    """How long a tenant's session may be idle in an open transaction."""
    session_transaction_seconds: PositiveFloat = 86_400
    """How long a tenant's session may keep one transaction open."""
    session_memory_mb: PositiveInt = 1024
    """The memory that a tenant's session may use, on servers that report it: MySQL and MariaDB."""
    session_shared_percent: Percent = 50
    """When this share of a host's locks or prepared statements is in use, the sessions that hold the most are ended."""
    refill_interval_seconds: PositiveFloat = 30
    reconcile_interval_seconds: PositiveFloat = 300
    sweep_interval_seconds: PositiveFloat = 600
    retention_seconds: PositiveFloat = 2_592_000
    """How long events and deliveries are kept after they are finished."""
    query_retention_seconds: PositiveFloat = 7_776_000
    """How long records of questions are kept."""
    operation_retention_seconds: PositiveFloat = 7_776_000
    """How long operations, and applications of blueprints, are kept after their end: longer than Temporal keeps their
    workflows."""
    usage_period_seconds: SecondsOfADay = 3600
    """The ledger's period. All workers need the same."""
    usage_retention_seconds: PositiveFloat = 34_560_000
    """How long the ledger is kept, in whole months."""
    orphan_age_seconds: NonNegativeFloat = 86_400
    """How long an orphan on a host is only reported before it is removed."""
    orphan_removal: bool = True
    """Whether orphans are removed at all."""

    # Backups
    backup_hour_seconds: PositiveFloat = 3600
    """The unit of the hours in policies of backups; a day is 24 of them. Shorter in tests alone."""
    final_backups: bool = True
    """Whether the data of a deleted database is destroyed only after a last backup of it, where its policy is on."""
    backups_per_host: PositiveInt = 3
    """Backups under way at once on one engine host."""
    backups_per_team: PositiveInt = 2
    backup_tests_per_region: PositiveInt = 1
    """Restore tests by schedule under way at once."""
    backup_store: str | None = None
    """`file:///folder` or `s3://bucket/prefix`; by default the folder `backups` in `home`. For S3 the usual AWS
    variables apply. All processes need the same."""
    backup_store_timeout_seconds: PositiveFloat = 120
    """How long one object of the store may take to be written or read, repetitions included."""
    backup_object_lock: ObjectLock = "off"
    """`governance` or `compliance`: S3 keeps each backup until it expires, and nobody deletes it before. The bucket
    needs Object Lock."""
    backup_age_recipient: str | None = None
    """An age recipient, `age1…`: backups are encrypted so that only its identity reads them."""
    backup_age_identity_file: Path | None = None
    """Identities of age recipients, one a line, for restores of such backups."""

    # Natural-language queries
    nl_model: str | None = None
    nl_max_rows: PositiveInt = 1000
    nl_timeout_seconds: PositiveFloat = 30
    query_timeout_seconds: PositiveFloat = 30

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
                    values[name] = _check(name, read(text.strip(), fields[name]))
                except ValueError as fault:
                    faults.append(f"{variable}: {fault}")
        if ("temporal_tls_cert_file" in values) != ("temporal_tls_key_file" in values):
            faults.append("HEADWATER_TEMPORAL_TLS_CERT_FILE and HEADWATER_TEMPORAL_TLS_KEY_FILE go together")
        if faults:
            raise InvalidSettings("\n".join(faults))
        return cls(**values)


def _check(name: str, value: Any) -> Any:
    """Checks what no type says, and returns the value."""
    if name == "regions" and not (value and all(map(is_region_code, value)) and len(set(value)) == len(value)):
        raise ValueError("expected region codes such as us-east-1, each once")
    if name in ("trusted_proxies", "webhook_allow_cidrs"):
        for network in value:
            ipaddress.ip_network(network, strict=False)
    if (name.startswith("temporal_tls_") or name == "backup_age_identity_file") and not _is_there(value):
        raise ValueError("there is no such file")
    if name == "public_url":
        # As browsers write an origin (RFC 6454, section 6.2).
        return value.removesuffix(":443" if value.startswith("https:") else ":80")
    return value


def _is_there(value: Any) -> bool:
    return not isinstance(value, Path) or value.is_file()
