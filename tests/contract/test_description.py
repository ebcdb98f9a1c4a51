"""The API's description is complete, valid, and the one that is committed."""

import json
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

import httpx
import pytest
from jsonschema_rs import Draft202012Validator
from litestar import Litestar, get, post
from litestar.handlers import HTTPRouteHandler
from litestar.routes import HTTPRoute
from prometheus_client.parser import text_string_to_metric_families

from app.auth.scopes import Scope
from app.core.errors import AppError
from app.http.openapi import formatted
from app.outbox.event_types import EventType
from app.web.operation import OPT, check_actions, operation
from tests.contract.documented import Described, Description
from tests.support.routes import api_handlers, describe
from tests.support.together import together

DESCRIPTION = Description(describe())
DOCUMENT = DESCRIPTION.document
OPERATIONS = DESCRIPTION.operations
COMMITTED = Path(__file__).parents[2] / "docs" / "openapi.json"

FOR_PEOPLE = {
    "listSessions",
    "endSession",
    "endAllSessions",
    "createPasskeyChallenge",
    "addPasskey",
    "listPasskeys",
    "renamePasskey",
    "removePasskey",
}
"""Operations that need a session."""
FOR_ANYBODY = {"followSignInLink", "getSession", "createSignInChallenge", "usePasskey"} | {
    "getSignInMethods",
    "createSignInRedirect",
    "createInvitedSignInRedirect",
    "previewInvitation",
    "useProvider",
}
"""Operations that need neither: they sign somebody in, or say who is."""
ANY_KEY = {"getMe"} | FOR_PEOPLE | FOR_ANYBODY
"""Operations that need no scope: interface specification, section 5, point 5."""
SPECIFIED = {
    ("GET", "/api/v1/me"): set(),
    ("GET", "/api/v1/database_types"): {"databases:read"},
    ("POST", "/api/v1/databases"): {"databases:write"},
    ("GET", "/api/v1/databases"): {"databases:read"},
    ("GET", "/api/v1/databases/{uuid}"): {"databases:read"},
    ("PATCH", "/api/v1/databases/{uuid}"): {"databases:write"},
    ("PATCH", "/api/v1/databases/{uuid}/quotas"): {"databases:write"},
    ("DELETE", "/api/v1/databases/{uuid}"): {"databases:write"},
    ("POST", "/api/v1/databases/{uuid}/undeletions"): {"databases:write"},
    ("GET", "/api/v1/deleted_databases"): {"databases:read"},
    ("POST", "/api/v1/databases/{uuid}/blueprint_applications"): {"databases:write", "blueprints:read"},
    ("GET", "/api/v1/blueprint_applications/{id}"): {"blueprints:read"},
    ("GET", "/api/v1/blueprints"): {"blueprints:read"},
    ("POST", "/api/v1/blueprints"): {"blueprints:write"},
    ("GET", "/api/v1/blueprints/{uuid}"): {"blueprints:read"},
    ("PATCH", "/api/v1/blueprints/{uuid}"): {"blueprints:write"},
    ("DELETE", "/api/v1/blueprints/{uuid}"): {"blueprints:write"},
    ("POST", "/api/v1/blueprint_validations"): {"blueprints:read"},
    ("POST", "/api/v1/webhook_endpoints"): {"webhooks:write"},
    ("GET", "/api/v1/webhook_endpoints"): {"webhooks:read"},
    ("DELETE", "/api/v1/webhook_endpoints/{id}"): {"webhooks:write"},
    ("POST", "/api/v1/webhook_endpoints/{id}/test_deliveries"): {"webhooks:write"},
    ("GET", "/api/v1/webhook_endpoints/{id}/deliveries"): {"webhooks:read"},
    # Ours.
    ("POST", "/api/v1/webhook_endpoints/{id}/secret_rotations"): {"webhooks:write"},
    ("GET", "/api/v1/webhook_endpoints/{id}/deliveries/{delivery_id}"): {"webhooks:read"},
    ("POST", "/api/v1/webhook_endpoints/{id}/deliveries/{delivery_id}/retries"): {"webhooks:write"},
    ("GET", "/api/v1/usage"): {"databases:read"},
    ("GET", "/api/v1/databases/{uuid}/metrics"): {"databases:read"},
    ("GET", "/api/v1/teams/{id}/prometheus"): {"databases:read"},
    ("GET", "/api/v1/teams/{id}/backup_storage"): {"backups:read"},
    ("GET", "/api/v1/operations"): {"databases:read"},
    ("GET", "/api/v1/operations/{uuid}"): {"databases:read"},
    ("GET", "/api/v1/operations/{uuid}/events"): {"databases:read"},
    ("POST", "/api/v1/operations/{uuid}/cancellations"): {"databases:write"},
    ("POST", "/api/v1/operations/{uuid}/retries"): {"databases:write"},
    ("POST", "/api/v1/databases/{uuid}/credential_rotations"): {"databases:write"},
    ("GET", "/api/v1/databases/{uuid}/credential_rotations"): {"databases:read"},
    ("GET", "/api/v1/credential_rotations/{uuid}"): {"databases:read"},
    ("POST", "/api/v1/credential_rotations/{uuid}/completions"): {"databases:write"},
    ("GET", "/api/v1/databases/{uuid}/credentials"): {"databases:read"},
    ("GET", "/api/v1/databases/{uuid}/users"): {"databases:read"},
    ("POST", "/api/v1/databases/{uuid}/users"): {"databases:write"},
    ("DELETE", "/api/v1/databases/{uuid}/users/{name}"): {"databases:write"},
    ("POST", "/api/v1/databases/{uuid}/users/{name}/rotations"): {"databases:write"},
    ("POST", "/api/v1/databases/{uuid}/restorations"): {"backups:read", "databases:write"},
    ("POST", "/api/v1/databases/{uuid}/backups"): {"backups:write"},
    ("GET", "/api/v1/databases/{uuid}/backups"): {"backups:read"},
    ("GET", "/api/v1/backups"): {"backups:read"},
    ("GET", "/api/v1/backups/{uuid}"): {"backups:read"},
    ("DELETE", "/api/v1/backups/{uuid}"): {"backups:write"},
    ("POST", "/api/v1/backups/{uuid}/restore_tests"): {"backups:write"},
    ("GET", "/api/v1/databases/{uuid}/backup_policy"): {"backups:read"},
    ("PATCH", "/api/v1/databases/{uuid}/backup_policy"): {"backups:write"},
    ("POST", "/api/v1/query_executions"): {"queries:write"},
    ("GET", "/api/v1/query_executions"): {"queries:write"},
    ("POST", "/api/v1/query_executions/{id}/runs"): {"queries:write"},
    ("GET", "/api/v1/databases/{uuid}/query_allowance"): {"queries:write"},
    ("PATCH", "/api/v1/webhook_endpoints/{id}"): {"webhooks:write"},
    ("GET", "/api/v1/webhook_endpoints/{id}"): {"webhooks:read"},
    ("GET", "/api/v1/blueprints/{uuid}/versions"): {"blueprints:read"},
    ("GET", "/api/v1/blueprints/{uuid}/versions/{version}"): {"blueprints:read"},
    ("GET", "/api/v1/blueprints/{uuid}/blueprint_applications"): {"blueprints:read"},
    ("GET", "/api/v1/databases/{uuid}/blueprint_applications"): {"databases:read", "blueprints:read"},
    ("POST", "/api/v1/databases/{uuid}/pauses"): {"databases:write"},
    ("DELETE", "/api/v1/databases/{uuid}/pauses"): {"databases:write"},
    ("GET", "/api/v1/audit_events"): {"audit:read"},
    ("GET", "/api/v1/api_keys"): {"keys:read"},
    ("POST", "/api/v1/api_keys"): {"keys:write"},
    ("GET", "/api/v1/api_keys/{id}"): {"keys:read"},
    ("PATCH", "/api/v1/api_keys/{id}"): {"keys:write"},
    ("DELETE", "/api/v1/api_keys/{id}"): {"keys:write"},
    ("POST", "/api/v1/api_keys/{id}/rotations"): {"keys:write"},
    ("GET", "/api/v1/teams"): {"teams:read"},
    ("POST", "/api/v1/teams"): {"teams:write"},
    ("GET", "/api/v1/teams/{id}"): {"teams:read"},
    ("PATCH", "/api/v1/teams/{id}"): {"teams:write"},
    ("DELETE", "/api/v1/teams/{id}"): {"teams:write"},
    ("GET", "/api/v1/teams/{id}/members"): {"teams:read"},
    ("POST", "/api/v1/teams/{id}/members"): {"teams:write"},
    ("GET", "/api/v1/teams/{id}/members/{user_id}"): {"teams:read"},
    ("PATCH", "/api/v1/teams/{id}/members/{user_id}"): {"teams:write"},
    ("DELETE", "/api/v1/teams/{id}/members/{user_id}"): {"teams:write"},
    ("GET", "/api/v1/teams/{id}/invitations"): {"teams:read"},
    ("POST", "/api/v1/teams/{id}/invitations"): {"teams:write"},
    ("DELETE", "/api/v1/teams/{id}/invitations/{invitation_id}"): {"teams:write"},
    ("POST", "/api/v1/invitation_acceptances"): {"teams:write"},
    ("GET", "/api/v1/operator/hosts"): {"operator:read"},
    ("POST", "/api/v1/operator/hosts"): {"operator:write"},
    ("DELETE", "/api/v1/operator/hosts/{id}"): {"operator:write"},
    ("POST", "/api/v1/operator/hosts/{id}/drains"): {"operator:write"},
    ("DELETE", "/api/v1/operator/hosts/{id}/drains"): {"operator:write"},
    ("POST", "/api/v1/operator/hosts/{id}/evacuations"): {"operator:write"},
    ("GET", "/api/v1/operator/pools"): {"operator:read"},
    ("GET", "/api/v1/operator/findings"): {"operator:read"},
    ("GET", "/api/v1/operator/audit_seals"): {"operator:read"},
    ("POST", "/api/v1/operator/checks"): {"operator:write"},
    ("GET", "/api/v1/operator/operations"): {"operator:read"},
    ("GET", "/api/v1/operator/operations/{uuid}"): {"operator:read"},
    ("POST", "/api/v1/operator/operations/{uuid}/cancellations"): {"operator:write"},
    ("POST", "/api/v1/operator/operations/{uuid}/retries"): {"operator:write"},
    ("POST", "/api/v1/operator/databases/{uuid}/pauses"): {"operator:write"},
    ("DELETE", "/api/v1/operator/databases/{uuid}/pauses"): {"operator:write"},
}
"""Interface specification, section 4."""
COMPUTING = {"validateBlueprint", "createSignInChallenge", "createSignInRedirect"} | {
    "createInvitedSignInRedirect",
    "previewInvitation",
}
"""Operations that are sent by a method that changes things, and change nothing."""
UNKEYED = {
    "updateBlueprint",
    "deleteBlueprint",
    "validateBlueprint",
    "testWebhookEndpoint",
    "retryWebhookDelivery",
    "executeQuery",
    "executeTranslatedQuery",
    "followSignInLink",
    "createSignInChallenge",
    "usePasskey",
    "createSignInRedirect",
    "createInvitedSignInRedirect",
    "previewInvitation",
    "useProvider",
}
"""Operations that change something, or read a body, and take no Idempotency-Key: section 4.13."""


EVENTS = "text/event-stream"


def route_handlers(app: Litestar) -> list[HTTPRouteHandler]:
    return [handler for route in app.routes if isinstance(route, HTTPRoute) for handler in route.route_handlers]


def media_of(answer: dict[str, Any]) -> dict[str, Any]:
    media: dict[str, Any] = DESCRIPTION.resolve(answer)["content"]["application/json"]
    return media


def event_of(example: str) -> tuple[str, Any]:
    """The name and the data of an event."""
    fields = dict(line.split(": ", 1) for line in example.strip().splitlines())
    assert fields.keys() == {"id", "event", "data"}
    return fields["event"], json.loads(fields["data"])


def scopes_of(operation: dict[str, Any]) -> list[str]:
    """None for what only people do."""
    if operation["operationId"] in FOR_PEOPLE | FOR_ANYBODY:
        assert operation["security"] == ([{"session": []}] if operation["operationId"] in FOR_PEOPLE else [])
        return []
    scopes: list[str] = operation["security"][0]["api_key"]
    return scopes


def codes_of(answer: dict[str, Any]) -> list[str]:
    """Those of a refusal."""
    return list(media_of(answer)["examples"])


def test_every_group_of_operations_is_described_and_none_besides() -> None:
    used = {tag for path in DOCUMENT["paths"].values() for operation in path.values() for tag in operation["tags"]}
    first, *others = [tag["name"] for tag in DOCUMENT["tags"]]
    assert first == "databases"
    assert {first, *others} == used


def test_the_committed_copy_is_what_the_code_says() -> None:
    assert COMMITTED.read_bytes() == formatted(DOCUMENT), "docs/openapi.json is out of date: run `make openapi`"


def test_it_refers_to_nothing_that_clients_lack() -> None:
    assert b"specification" not in formatted(DOCUMENT).lower()


def test_it_is_openapi_3_1() -> None:
    # To import it takes a second, which each process of a run would need to know its tests.
    definitions = import_module("schemathesis.specs.openapi.definitions")
    assert [fault.message for fault in definitions.OPENAPI_31_VALIDATOR.iter_errors(DOCUMENT)] == []
    for schema in DOCUMENT["components"]["schemas"].values():
        Draft202012Validator({**schema, "components": DOCUMENT["components"]})


def test_it_has_the_specified_operations_and_scopes() -> None:
    described = {
        (found.method, found.path): set(found.operation["security"][0]["api_key"])
        for name, found in OPERATIONS.items()
        if name not in FOR_PEOPLE | FOR_ANYBODY
    }
    assert described == SPECIFIED


def test_every_route_is_described() -> None:
    # Litestar answers OPTIONS by handlers of its own.
    handlers = [handler for _, handler in api_handlers() if handler.http_methods != {"OPTIONS"}]
    assert all(OPT in handler.opt for handler in handlers)
    names = Counter(handler.operation_id for handler in handlers)
    assert set(names) == set(OPERATIONS)
    assert set(names.values()) == {1}


@together("found", OPERATIONS.values(), ids=OPERATIONS)
def test_an_operation_says_all_that_a_client_needs(found: Described) -> None:
    operation = found.operation
    assert operation["summary"]
    scopes = scopes_of(operation)
    assert set(scopes) <= set(Scope)
    assert bool(scopes) == (operation["operationId"] not in ANY_KEY)
    for parameter in operation["parameters"]:
        assert parameter["in"] == "path" or parameter["description"]
    keyed = any(parameter["name"] == "Idempotency-Key" for parameter in operation["parameters"])
    assert keyed == (found.method != "GET" and operation["operationId"] not in UNKEYED)
    if "requestBody" in operation:
        media = operation["requestBody"]["content"]["application/json"]
        DESCRIPTION.validate(media["schema"], media["example"])


def test_operations_that_may_change_something_declare_their_action() -> None:
    declared = {name: found.operation.get("x-audit-action", "") for name, found in OPERATIONS.items()}
    changing = {name for name, found in OPERATIONS.items() if found.method != "GET"}
    assert {name for name, action in declared.items() if action != ""} == changing
    assert {name for name, action in declared.items() if action is None} == COMPUTING
    actions = Counter(action for action in declared.values() if action)
    assert set(actions.values()) == {1}, "two operations have the same action"


@pytest.mark.parametrize(("method", "action", "problem"), [(post, None, "declares no"), (get, "thing.see", "reads")])
def test_a_route_is_not_assembled_with_the_wrong_declaration(method: Any, action: str | None, problem: str) -> None:
    async def handle() -> None: ...

    declared = operation("doThing", "Do a thing", answers={200: None}, examples={}, action=action)
    with pytest.raises(ValueError, match=problem):
        check_actions(route_handlers(Litestar([method("/things", **declared)(handle)], openapi_config=None)))


@together("found", OPERATIONS.values(), ids=OPERATIONS)
def test_every_answer_has_an_example_that_fits(found: Described) -> None:
    for status, answer in found.operation["responses"].items():
        resolved = DESCRIPTION.resolve(answer)
        assert "X-Request-Id" in resolved["headers"]
        assert ("RateLimit" in resolved["headers"]) == (status != "401")
        assert ("Retry-After" in resolved["headers"]) == (status in ("429", "503"))
        if status == "204":
            assert "content" not in resolved
            continue
        if EVENTS in resolved.get("content", {}):
            name, data = event_of(resolved["content"][EVENTS]["example"])
            assert (name, data["object"]) == ("operation", "operation")
            DESCRIPTION.validate({"$ref": "#/components/schemas/OperationView"}, data)
            continue
        if "text/plain" in resolved.get("content", {}):
            assert list(text_string_to_metric_families(resolved["content"]["text/plain"]["example"]))
            continue
        media = media_of(answer)
        examples = (
            [DESCRIPTION.resolve(example)["value"] for example in media["examples"].values()]
            if int(status) >= 400
            else [media["example"]]
        )
        assert examples
        for example in examples:
            DESCRIPTION.validate(media["schema"], example)


@together("found", OPERATIONS.values(), ids=OPERATIONS)
def test_the_refusals_that_any_operation_may_meet(found: Described) -> None:
    responses = found.operation["responses"]
    assert {"401", "403", "429", "500", "503"} <= responses.keys()
    assert ("404" in responses) >= ("{" in found.path)
    if found.method != "GET" and found.operation["operationId"] not in UNKEYED:
        assert {"400", "409", "413", "422"} <= responses.keys()
    assert ("insufficient_scope" in codes_of(responses["403"])) == (found.operation["operationId"] not in ANY_KEY)


@together("found", OPERATIONS.values(), ids=OPERATIONS)
def test_all_errors_are_of_one_schema(found: Described) -> None:
    """Generators make a class of every other one."""
    for status, answer in found.operation["responses"].items():
        if int(status) >= 400:
            assert media_of(answer)["schema"] == {"$ref": "#/components/schemas/ErrorAnswer"}
            for code, example in media_of(answer)["examples"].items():
                assert DESCRIPTION.resolve(example)["value"]["error"]["code"] == code


@together("found", OPERATIONS.values(), ids=OPERATIONS)
def test_what_is_sent_has_no_defaults_that_generators_would_demand(found: Described) -> None:
    assert found.operation.get("requestBody", {}).get("required", True)
    for schema in DOCUMENT["components"]["schemas"].values():
        assert not any("default" in field for field in schema.get("properties", {}).values())
    for parameter in found.operation["parameters"]:
        if parameter["name"] == "Idempotency-Key":
            assert parameter["schema"].keys() == {"type", "pattern"}
            assert "example" not in parameter


def test_every_error_is_described_once() -> None:
    codes = Counter(kind.code for kind in AppError.__subclasses__())
    assert set(codes.values()) == {1}
    assert DOCUMENT["components"]["examples"].keys() == codes.keys()
    answers = [answer for found in OPERATIONS.values() for answer in found.operation["responses"].items()]
    reachable = {code for status, answer in answers if int(status) >= 400 for code in codes_of(answer)}
    # No operation answers 405: it is for methods that a path doesn't have. The operator's command alone tells what is
    # destroyed from what never was.
    assert codes.keys() - reachable == {
        "method_not_allowed",
        "database_destroyed",
    }
    assert codes_of(DOCUMENT["components"]["responses"]["MethodNotAllowed"]) == ["method_not_allowed"]


def test_every_event_is_described() -> None:
    assert DOCUMENT["webhooks"].keys() == {event.value for event in EventType}
    for name, item in DOCUMENT["webhooks"].items():
        media = item["post"]["requestBody"]["content"]["application/json"]
        assert media["example"]["event"] == name
        DESCRIPTION.validate(media["schema"], media["example"])
        headers = {parameter["name"] for parameter in item["post"]["parameters"] if parameter["required"]}
        assert headers == {
            "X-Service-Signature",
            "X-Service-Event",
            "webhook-id",
            "webhook-timestamp",
            "webhook-signature",
        }


def test_links_lead_to_operations() -> None:
    for creating in ("createDatabase", "createBlueprint"):
        links = [
            link
            for answer in OPERATIONS[creating].operation["responses"].values()
            for name, link in DESCRIPTION.resolve(answer).get("links", {}).items()
            if name != "getOperation"
        ]
        beneath = f"{OPERATIONS[creating].path}/{{uuid}}"
        assert {link["operationId"] for link in links} == {
            found.operation["operationId"]
            for found in OPERATIONS.values()
            # A link hands on one parameter.
            if found.path.startswith(beneath) and found.path.count("{") == 1
        }


def test_what_accepts_a_change_links_to_its_operation() -> None:
    link = {"operationId": "getOperation", "parameters": {"uuid": "$response.body#/operation/uuid"}}
    linked = set()
    for name, found in OPERATIONS.items():
        for status, answer in found.operation["responses"].items():
            resolved = DESCRIPTION.resolve(answer)
            schema = resolved.get("content", {}).get("application/json", {}).get("schema", {})
            names_one = status < "300" and "operation" in DESCRIPTION.resolve(schema).get("properties", {})
            assert (resolved.get("links", {}).get("getOperation") == link) == names_one, f"{name} {status}"
            linked |= {name} if names_one else set()
    assert linked >= {"createDatabase", "deleteDatabase", "rotateCredentials", "cancelOperation"}


def test_a_client_meets_no_surprise_unnoticed() -> None:
    """What the other tests rely on: an answer that differs from the description fails."""
    me = OPERATIONS["getMe"]
    example = media_of(me.operation["responses"]["200"])["example"]
    DESCRIPTION.check(me, httpx.Response(200, json=example))
    for surprise in (
        httpx.Response(418, json=example),
        httpx.Response(200, json={**example, "extra": 1}),
        httpx.Response(200, json={"data": example["data"]}),
        httpx.Response(200, json=example, headers={"Retry-After": "1"}),
    ):
        with pytest.raises(AssertionError):
            DESCRIPTION.check(me, surprise)
