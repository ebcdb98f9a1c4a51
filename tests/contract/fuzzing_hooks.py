"""What a fuzzing run has to know beyond the description."""

import itertools
import re
from typing import Any

import schemathesis
from schemathesis import Case, HookContext

from app.web.guards import IDEMPOTENCY_HEADER, IDEMPOTENCY_KEY_PATTERN

_numbers = itertools.count()


@schemathesis.hook
def before_call(_: HookContext, case: Case[Any], kwargs: dict[str, object]) -> None:
    """Gives each create a key of its own. Generated ones repeat, and then a create is answered as the one before was,
    with a database that may have been deleted since: right, but a check would take it for a resource that got lost."""
    key = case.headers.get(IDEMPOTENCY_HEADER)
    if case.operation.label == "POST /api/v1/databases" and key and re.fullmatch(IDEMPOTENCY_KEY_PATTERN, key):
        case.headers[IDEMPOTENCY_HEADER] = f"{key[:240]}-{next(_numbers)}"
