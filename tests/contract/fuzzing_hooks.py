"""What a fuzzing run has to know beyond the description."""

import itertools
import os
import re
from typing import Any

import schemathesis
from schemathesis import Case, HookContext
from schemathesis.core.transport import Response
from schemathesis.generation.meta import CoveragePhaseData, CoverageScenario
from schemathesis.specs.openapi import object_authorization

from app.web.idempotency import IDEMPOTENCY_HEADER, IDEMPOTENCY_KEY_PATTERN
from tests.contract.documented import IS_SHORT, OWN_KEYS, OWN_TEAMS

_CREATES = {"POST /api/v1/databases", "POST /api/v1/blueprints", "POST /api/v1/api_keys", "POST /api/v1/teams"}
_FILTERED = {"GET /api/v1/databases", "GET /api/v1/deleted_databases"}
_UUID = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_numbers = itertools.count()
_own_keys = set(os.environ.get(OWN_KEYS, "").split(","))
_own_teams = set(os.environ.get(OWN_TEAMS, "").split(","))
_is_short = IS_SHORT in os.environ
_covered: set[object] = set()


@schemathesis.hook
def filter_case(_: HookContext, case: Case[Any]) -> bool:
    """In a short run each field is given one value of a wrong type, and each path one request of each method that it
    doesn't have: the others of either kind are half of all requests, and a long run sends them."""
    data = case.meta.phase.data if _is_short and case.meta else None
    if not isinstance(data, CoveragePhaseData):
        return True
    if data.scenario is CoverageScenario.INCORRECT_TYPE:
        field = (data.parameter_location, data.parameter, data.description)
        return _is_first((case.operation.label, case.media_type, *field))
    if data.scenario is CoverageScenario.UNSPECIFIED_HTTP_METHOD:
        return _is_first((case.operation.path, case.method))
    return True


def _is_first(kind: object) -> bool:
    is_first = kind not in _covered
    _covered.add(kind)
    return is_first


@schemathesis.hook
def before_call(_: HookContext, case: Case[Any], kwargs: dict[str, object]) -> None:
    """Gives each create a key of its own. Generated ones repeat, and then a create is answered as the one before was,
    with what may have been deleted since: right, but a check would take it for a resource that got lost."""
    key = case.headers.get(IDEMPOTENCY_HEADER)
    if case.operation.label in _CREATES and key and re.fullmatch(IDEMPOTENCY_KEY_PATTERN, key):
        case.headers[IDEMPOTENCY_HEADER] = f"{key[:240]}-{next(_numbers)}"
    if case.operation.label in _FILTERED and next(_numbers) % 4:
        # Made up, they are never of anything, and no other filter would matter.
        if isinstance(regions := case.query.get("region"), list) and regions and all(map(_is_text, regions)):
            case.query["region"] = ["us-east-1"]
        if re.fullmatch(_UUID, str(case.query.get("starting_after"))):
            del case.query["starting_after"]
    if "/api_keys/{id}" in case.operation.label and str(case.path_parameters.get("id")) in _own_keys:
        # It would end or narrow the run.
        case.path_parameters["id"] = 2**62
    if "/operator/hosts/{id}" in case.operation.label and str(case.path_parameters.get("id")).isdecimal():
        # Other tests' databases are on them.
        case.path_parameters["id"] = 2**62
    if case.operation.label == "DELETE /api/v1/teams/{id}" and str(case.path_parameters.get("id")) in _own_teams:
        case.path_parameters["id"] = 2**62


def _is_text(value: object) -> bool:
    return isinstance(value, str) and 1 <= len(value) <= 255


_json_body = object_authorization._json_body


def _without_request_id(response: Response) -> object:
    """The check for other users' objects compares whole bodies. With the id of the request in it no body is another's,
    and the check would find nothing."""
    body = _json_body(response)
    return {name: value for name, value in body.items() if name != "request_id"} if isinstance(body, dict) else body


object_authorization._json_body = _without_request_id
