"""Every table of our own state. Times are UTC. Durations are computed from times, never stored."""

from app.store.tables.accounts import ApiKey, ApiKeyUsage, Invitation, Membership, Team, User
from app.store.tables.audit import AuditRefusal, AuditSeal
from app.store.tables.backups import Backup, BackupPolicy
from app.store.tables.blueprints import Blueprint, BlueprintApplication, BlueprintStatement, BlueprintVersion
from app.store.tables.connections import ConnectionHold, HostConnections
from app.store.tables.credentials import CredentialRotation, DatabaseUser
from app.store.tables.databases import Database, DatabaseLabel
from app.store.tables.findings import Finding
from app.store.tables.hosts import EngineHost
from app.store.tables.installation import Installation
from app.store.tables.metering import UsageClock, UsageDay, UsageMeter, UsagePart
from app.store.tables.metrics import MetricReading, MetricRollup
from app.store.tables.operations import DatabaseOperation
from app.store.tables.pool import PoolTarget
from app.store.tables.queries import QueryExecution, QueryReader
from app.store.tables.requests import Event, IdempotencyKey, WorkflowStart
from app.store.tables.restorations import Restoration
from app.store.tables.sessions import (
    OidcSubject,
    Passkey,
    PasskeyChallenge,
    Session,
    SessionUsage,
    SignInAttempt,
    SignInLink,
)
from app.store.tables.usage import DatabaseUsage
from app.store.tables.webhooks import WebhookAttempt, WebhookDelivery, WebhookEndpoint, WebhookSecret

TABLES = (
    Installation,
    User,
    Team,
    Membership,
    Invitation,
    ApiKey,
    ApiKeyUsage,
    Session,
    SessionUsage,
    SignInLink,
    SignInAttempt,
    Passkey,
    PasskeyChallenge,
    OidcSubject,
    EngineHost,
    Database,
    DatabaseLabel,
    IdempotencyKey,
    Event,
    WorkflowStart,
    QueryReader,
    QueryExecution,
    PoolTarget,
    Finding,
    WebhookEndpoint,
    WebhookSecret,
    WebhookDelivery,
    WebhookAttempt,
    Blueprint,
    BlueprintVersion,
    BlueprintApplication,
    BlueprintStatement,
    DatabaseUsage,
    HostConnections,
    ConnectionHold,
    CredentialRotation,
    DatabaseUser,
    DatabaseOperation,
    Backup,
    BackupPolicy,
    Restoration,
    AuditSeal,
    AuditRefusal,
    UsageClock,
    UsageMeter,
    UsagePart,
    UsageDay,
    MetricReading,
    MetricRollup,
)
