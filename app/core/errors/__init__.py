"""Every error a client of the API can meet: one class each, with its code, HTTP status and meaning.

    AppError
    ├── MalformedJSON            400 malformed_json
    ├── Unauthorized             401 unauthorized
    ├── SessionEnded             401 session_ended
    ├── InvalidApiKey            403 invalid_api_key
    ├── ApiKeyExpired            403 api_key_expired
    ├── IpNotAllowed             403 ip_not_allowed
    ├── InsufficientScope        403 insufficient_scope
    ├── InsufficientRole         403 insufficient_role
    ├── InvitationForAnother     403 invitation_for_another
    ├── NotAMember               403 not_a_member
    ├── KeyForSomeDatabases      403 key_for_some_databases
    ├── ExceedsOwnKey            403 exceeds_own_key
    ├── SessionRequired          403 session_required
    ├── CrossOriginRefused       403 cross_origin_refused
    ├── SignInRefused            403 sign_in_refused
    ├── OperatorsOnly            403 operators_only
    ├── NotFound                 404 not_found
    ├── MethodNotAllowed         405 method_not_allowed
    ├── RequestTimeout           408 request_timeout
    ├── IdempotencyKeyConflict   409 idempotency_key_conflict
    ├── IdempotencyKeyInProgress 409 idempotency_key_in_progress
    ├── DatabaseNotDeleted       409 not_deleted
    ├── DatabaseDestroyed        409 database_destroyed
    ├── PausedOtherwise          409 paused_otherwise
    ├── DeletionProtected        409 deletion_protected
    ├── DeletionUndone           409 deletion_undone
    ├── RestorationInProgress    409 restoration_in_progress
    ├── OperationNotCancellable  409 operation_not_cancellable
    ├── QueryAlreadyExecuted     409 query_already_executed
    ├── OperationEnded           409 operation_ended
    ├── RotationInProgress       409 rotation_in_progress
    ├── RotationNotOverlapping   409 rotation_not_overlapping
    ├── RotationCancelled        409 rotation_cancelled
    ├── UserExists               409 user_exists
    ├── UserNotActive            409 user_not_active
    ├── UserRotationNotInForce   409 user_rotation_not_in_force
    ├── LastOwner                409 last_owner
    ├── AlreadyAMember           409 already_a_member
    ├── InvitationEnded          409 invitation_ended
    ├── TeamHasDatabases         409 team_has_databases
    ├── BackupInUse              409 backup_in_use
    ├── BackupBeingRestored      409 backup_being_restored
    ├── BackupProtected          409 backup_locked
    ├── PayloadTooLarge          413 payload_too_large
    ├── MissingRequiredField     422 missing_required_field
    ├── InvalidField             422 invalid_field
    ├── PlanLimitExceeded        422 plan_limit_exceeded
    ├── CapacityExhausted        422 capacity_exhausted
    ├── DatabaseNotActive        422 database_not_active
    ├── RestorationFailed        422 restoration_failed
    ├── BackupNotCompleted       422 backup_not_completed
    ├── BackupIncompatible       422 backup_incompatible
    ├── BlueprintInvalid         422 blueprint_invalid
    ├── SystemBlueprint          422 system_blueprint
    ├── EndpointLimitReached     422 endpoint_limit_reached
    ├── KeyLimitReached          422 key_limit_reached
    ├── PasskeyLimitReached      422 passkey_limit_reached
    ├── TeamLimitReached         422 team_limit_reached
    ├── TeamsLimitReached        422 teams_limit_reached
    ├── UnsafeSQL                422 unsafe_sql
    ├── SearchTooWide            422 search_too_wide
    ├── QueryNotTranslated       422 query_not_translated
    ├── RateLimitExceeded        429 rate_limit_exceeded
    ├── TooManyInFlight          429 too_many_in_flight
    ├── TooManyStreams           429 too_many_streams
    ├── MonthlyQuotaExceeded     429 monthly_quota_exceeded
    ├── QueryAllowanceExceeded   429 query_allowance_exceeded
    ├── DeletionsPending         429 deletions_pending
    ├── TooManyUnderWay          429 too_many_under_way
    ├── PingsUnderWay            429 pings_under_way
    ├── InternalError            500 internal_error
    ├── QueryExecutionFailed     500 query_execution_failed
    ├── RevocationPending        503 revocation_pending
    ├── CredentialsPending       503 credentials_pending
    ├── LanguageModelUnavailable 503 language_model_unavailable
    ├── DatabaseUnreachable      503 database_unreachable
    └── ServiceUnavailable       503 service_unavailable

The envelope of interface specification section 2.10 is derived from it.
"""

from app.core.errors.access import (
    ApiKeyExpired,
    ExceedsOwnKey,
    InsufficientRole,
    InsufficientScope,
    InvalidApiKey,
    IpNotAllowed,
    KeyForSomeDatabases,
    KeyLimitReached,
    MonthlyQuotaExceeded,
    NotAMember,
    OperatorsOnly,
    RateLimitExceeded,
    TooManyInFlight,
    TooManyStreams,
    Unauthorized,
    rate_limit_headers,
    rate_limit_values,
)
from app.core.errors.backups import (
    BackupBeingRestored,
    BackupIncompatible,
    BackupInUse,
    BackupNotCompleted,
    BackupProtected,
)
from app.core.errors.base import AppError
from app.core.errors.blueprints import BlueprintInvalid, SystemBlueprint
from app.core.errors.credentials import (
    CredentialsPending,
    RotationCancelled,
    RotationInProgress,
    RotationNotOverlapping,
    UserExists,
    UserNotActive,
    UserRotationNotInForce,
)
from app.core.errors.databases import (
    CapacityExhausted,
    DatabaseDestroyed,
    DatabaseNotActive,
    DatabaseNotDeleted,
    DatabaseUnreachable,
    DeletionProtected,
    DeletionsPending,
    DeletionUndone,
    PausedOtherwise,
    PlanLimitExceeded,
    RestorationFailed,
    RestorationInProgress,
    RevocationPending,
    SearchTooWide,
)
from app.core.errors.operations import OperationEnded, OperationNotCancellable
from app.core.errors.questions import (
    LanguageModelUnavailable,
    QueryAllowanceExceeded,
    QueryAlreadyExecuted,
    QueryExecutionFailed,
    QueryNotTranslated,
    UnsafeSQL,
)
from app.core.errors.requests import (
    IdempotencyKeyConflict,
    IdempotencyKeyInProgress,
    InvalidField,
    MalformedJSON,
    MethodNotAllowed,
    MissingRequiredField,
    NotFound,
    PayloadTooLarge,
    RequestTimeout,
    require_found,
)
from app.core.errors.service import InternalError, ServiceUnavailable
from app.core.errors.sessions import (
    CrossOriginRefused,
    PasskeyLimitReached,
    SessionEnded,
    SessionRequired,
    SignInRefused,
)
from app.core.errors.teams import (
    AlreadyAMember,
    InvitationEnded,
    InvitationForAnother,
    LastOwner,
    TeamHasDatabases,
    TeamLimitReached,
    TeamsLimitReached,
    TooManyUnderWay,
)
from app.core.errors.webhooks import EndpointLimitReached, PingsUnderWay

__all__ = [
    "AlreadyAMember",
    "ApiKeyExpired",
    "AppError",
    "BackupBeingRestored",
    "BackupInUse",
    "BackupIncompatible",
    "BackupNotCompleted",
    "BackupProtected",
    "BlueprintInvalid",
    "CapacityExhausted",
    "CredentialsPending",
    "CrossOriginRefused",
    "DatabaseDestroyed",
    "DatabaseNotActive",
    "DatabaseNotDeleted",
    "DatabaseUnreachable",
    "DeletionProtected",
    "DeletionUndone",
    "DeletionsPending",
    "EndpointLimitReached",
    "ExceedsOwnKey",
    "IdempotencyKeyConflict",
    "IdempotencyKeyInProgress",
    "InsufficientRole",
    "InsufficientScope",
    "InternalError",
    "InvalidApiKey",
    "InvalidField",
    "InvitationEnded",
    "InvitationForAnother",
    "IpNotAllowed",
    "KeyForSomeDatabases",
    "KeyLimitReached",
    "LanguageModelUnavailable",
    "LastOwner",
    "MalformedJSON",
    "MethodNotAllowed",
    "MissingRequiredField",
    "MonthlyQuotaExceeded",
    "NotAMember",
    "NotFound",
    "OperationEnded",
    "OperationNotCancellable",
    "OperatorsOnly",
    "PasskeyLimitReached",
    "PausedOtherwise",
    "PayloadTooLarge",
    "PingsUnderWay",
    "PlanLimitExceeded",
    "QueryAllowanceExceeded",
    "QueryAlreadyExecuted",
    "QueryExecutionFailed",
    "QueryNotTranslated",
    "RateLimitExceeded",
    "RequestTimeout",
    "RestorationFailed",
    "RestorationInProgress",
    "RevocationPending",
    "RotationCancelled",
    "RotationInProgress",
    "RotationNotOverlapping",
    "SearchTooWide",
    "ServiceUnavailable",
    "SessionEnded",
    "SessionRequired",
    "SignInRefused",
    "SystemBlueprint",
    "TeamHasDatabases",
    "TeamLimitReached",
    "TeamsLimitReached",
    "TooManyInFlight",
    "TooManyStreams",
    "TooManyUnderWay",
    "Unauthorized",
    "UnsafeSQL",
    "UserExists",
    "UserNotActive",
    "UserRotationNotInForce",
    "rate_limit_headers",
    "rate_limit_values",
    "require_found",
]
