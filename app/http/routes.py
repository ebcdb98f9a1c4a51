"""Every route of the API: the resources of `/api/v1`, each with what its handlers work with."""

from collections.abc import Callable
from typing import Any

from litestar import Litestar, Router
from litestar.di import Provide
from litestar.handlers import HTTPRouteHandler
from litestar.routes import HTTPRoute
from litestar.types import ControllerRouterHandler

from app.accounts.audit_routes import list_audit_events
from app.accounts.invitation_routes import (
    accept_invitation,
    create_invitation,
    list_invitations,
    withdraw_invitation,
)
from app.accounts.key_routes import KeyController
from app.accounts.routes import get_me
from app.accounts.sessions.invitation_routes import preview_invitation
from app.accounts.sessions.oidc_routes import (
    create_invited_sign_in_redirect,
    create_sign_in_redirect,
    get_sign_in_methods,
    use_provider,
)
from app.accounts.sessions.passkey_routes import (
    add_passkey,
    create_passkey_challenge,
    list_passkeys,
    remove_passkey,
    rename_passkey,
)
from app.accounts.sessions.routes import end_all_sessions, end_session, list_sessions
from app.accounts.sessions.sign_in_routes import create_sign_in_challenge, follow_link, get_session, use_passkey
from app.accounts.team_routes import TeamController
from app.backups.restores.routes import restore_database
from app.backups.routes import (
    change_backup_policy,
    delete_backup,
    get_backup,
    get_backup_policy,
    get_backup_storage,
    list_backups,
    list_database_backups,
    prove_backup,
    take_backup,
)
from app.blueprints.applications.routes import (
    apply_blueprint,
    get_application,
    list_applications,
    list_applications_of_blueprint,
)
from app.blueprints.routes import BlueprintController, validate_blueprint
from app.credentials.routes import (
    complete_credential_rotation,
    create_database_user,
    delete_database_user,
    get_credential_rotation,
    list_credential_rotations,
    list_credentials,
    list_database_users,
    rotate_credentials,
    rotate_database_user,
)
from app.http.authenticate import Authenticate
from app.http.openapi import document
from app.http.state import AppState
from app.http.visitors import Visitors
from app.operators.host_routes import add_host, drain_host, evacuate_host, remove_host, undrain_host
from app.operators.operation_routes import OperatorOperationController
from app.operators.routes import (
    list_audit_seals,
    list_findings,
    list_hosts,
    list_pools,
    pause_any_database,
    resume_any_database,
    run_consistency_check,
)
from app.provisioning.catalog import list_database_types
from app.provisioning.operation_routes import OperationController
from app.provisioning.pause_routes import PauseController
from app.provisioning.routes import DatabaseController, list_deleted_databases
from app.queries.routes import (
    execute_query,
    execute_translated_query,
    get_query_allowance,
    list_query_executions,
)
from app.usage.metrics.routes import get_database_metrics, get_team_prometheus
from app.usage.routes import get_usage
from app.web.operation import check_actions
from app.webhooks.routes import WebhookController


def describe() -> dict[str, Any]:
    """The API's description, without creating an application that could serve it."""
    return document(api_handlers())


def api_handlers() -> list[tuple[str, HTTPRouteHandler]]:
    """Every handler under `/api/v1`, with its path."""
    app = Litestar([resources(AppState()), signing_in(AppState())], openapi_config=None)
    return handlers_of(app)


def resources(state: AppState) -> Router:
    return Router(
        "/api/v1",
        route_handlers=[
            get_me,
            list_sessions,
            list_passkeys,
            _resource(
                lambda: state.sessions,
                end_session,
                end_all_sessions,
                create_passkey_challenge,
                add_passkey,
                rename_passkey,
                remove_passkey,
            ),
            _resource(lambda: state.audit, list_audit_events),
            _resource(
                lambda: state.accounts,
                KeyController,
                TeamController,
                create_invitation,
                list_invitations,
                withdraw_invitation,
                accept_invitation,
            ),
            list_database_types,
            get_usage,
            _resource(lambda: state.databases, DatabaseController, PauseController, list_deleted_databases),
            _resource(lambda: state.operations, OperationController),
            _resource(lambda: state.blueprints, BlueprintController, validate_blueprint),
            _resource(
                lambda: state.applications,
                apply_blueprint,
                list_applications,
                list_applications_of_blueprint,
                get_application,
            ),
            _resource(
                lambda: state.credentials,
                rotate_credentials,
                list_credential_rotations,
                get_credential_rotation,
                complete_credential_rotation,
                list_credentials,
                create_database_user,
                list_database_users,
                delete_database_user,
                rotate_database_user,
            ),
            _resource(lambda: state.restores, restore_database),
            _resource(
                lambda: state.backups,
                take_backup,
                list_database_backups,
                list_backups,
                get_backup_storage,
                get_backup,
                delete_backup,
                prove_backup,
                get_backup_policy,
                change_backup_policy,
            ),
            _resource(lambda: state.metrics, get_database_metrics, get_team_prometheus),
            _resource(lambda: state.webhooks, WebhookController),
            _resource(
                lambda: state.questions,
                execute_query,
                execute_translated_query,
                list_query_executions,
                get_query_allowance,
            ),
            _resource(
                lambda: state.operators,
                list_hosts,
                add_host,
                drain_host,
                undrain_host,
                evacuate_host,
                remove_host,
                list_pools,
                list_findings,
                list_audit_seals,
                run_consistency_check,
                pause_any_database,
                resume_any_database,
                OperatorOperationController,
            ),
        ],
        middleware=[Authenticate],
    )


def signing_in(state: AppState) -> Router:
    """What needs no key and no session."""
    return Router(
        "/api/v1",
        route_handlers=[
            _resource(
                lambda: state.sessions,
                get_session,
                follow_link,
                create_sign_in_challenge,
                use_passkey,
                get_sign_in_methods,
                create_sign_in_redirect,
                create_invited_sign_in_redirect,
                use_provider,
                preview_invitation,
            )
        ],
        middleware=[Visitors],
    )


def _resource(services: Callable[[], object], *handlers: ControllerRouterHandler) -> Router:
    """Routes with what they work with, as their parameter `services`: one dependency for each route, which takes no
    arguments. Several are resolved in a task group, and arguments validated, with each request: either costs more than
    all else about it."""

    # A function, for Litestar copies its router: of an object's method it would copy the object too.
    def give() -> Any:
        return services()

    return Router("/", route_handlers=handlers, dependencies={"services": Provide(give, sync_to_thread=False)})


def handlers_of(app: Litestar) -> list[tuple[str, HTTPRouteHandler]]:
    """Those of all paths. Raises `ValueError` for a route that hides from the audit log."""
    routes = (route for route in app.routes if isinstance(route, HTTPRoute))
    found = [(route.path_format, handler) for route in routes for handler in route.route_handlers]
    check_actions(handler for _, handler in found)
    return found
