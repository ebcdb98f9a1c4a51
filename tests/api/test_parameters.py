"""Query parameters and identifiers in paths. Interface specification, sections 4.1 and 4.4."""

from uuid import uuid4

import pytest
import pytest_asyncio

from tests.support.answers import body_of, error_of, field_of
from tests.support.client import OPERATOR_TOO, Caller
from tests.support.in_process import LoneApi
from tests.support.people import Person
from tests.support.routes import describe
from tests.support.together import together

OPERATIONS = [
    (method.upper(), path.removeprefix("/api/v1")) for path, item in describe()["paths"].items() for method in item
]


@pytest_asyncio.fixture(scope="module")
async def operator(shared: LoneApi) -> Caller:
    """Somebody who may call every operation."""
    return await shared.caller(scopes=OPERATOR_TOO)


@together("timeout", ["0", "121", "-1", "1.5", "abc", "", " ", "1_0", "true", "9" * 30])
@together("wait", ["true", "false"])
async def test_a_timeout_that_cannot_be(asking: Caller, timeout: str, wait: str) -> None:
    answer = await asking.post("/databases", {"name": "a"}, params={"wait": wait, "timeout": timeout})
    assert field_of(answer) == "timeout"


@pytest.mark.parametrize("timeout", ["1", "120"])
async def test_the_bounds_of_timeout(asking: Caller, timeout: str) -> None:
    body_of(await asking.post("/databases", {"name": "a"}, params={"timeout": timeout}), 202)


@pytest.mark.parametrize("wait", ["maybe", "2", "", "null"])
async def test_a_wait_that_cannot_be(asking: Caller, wait: str) -> None:
    assert field_of(await asking.post("/databases", {"name": "a"}, params={"wait": wait})) == "wait"


@together("limit", ["0", "101", "-1", "1.5", "x", ""])
async def test_a_limit_that_cannot_be(asking: Caller, limit: str) -> None:
    assert field_of(await asking.get("/databases", params={"limit": limit})) == "limit"


@pytest.mark.parametrize("limit", ["1", "100"])
async def test_the_bounds_of_limit(asking: Caller, limit: str) -> None:
    body_of(await asking.get("/databases", params={"limit": limit}))


@together("cursor", ["", "x", "1", "{%s}", "urn:uuid:%s", "%s0"])
async def test_a_cursor_that_is_no_uuid(asking: Caller, cursor: str) -> None:
    malformed = cursor.replace("%s", str(uuid4()))
    assert field_of(await asking.get("/databases", params={"starting_after": malformed})) == "starting_after"


@together("uuid", ["x", "1", "00000000000000000000000000000000", "%00", "%F0%9F%98%80"])
async def test_a_malformed_identifier_names_nothing(asking: Caller, uuid: str) -> None:
    error_of(await asking.get(f"/databases/{uuid}"), 404, "not_found")
    error_of(await asking.patch(f"/databases/{uuid}", {"name": "a"}), 404, "not_found")
    error_of(await asking.patch(f"/databases/{uuid}/quotas", {}), 404, "not_found")
    error_of(await asking.delete(f"/databases/{uuid}"), 404, "not_found")


@together(("method", "path"), OPERATIONS)
async def test_a_parameter_that_the_operation_does_not_have(
    operator: Caller, signed_in: Person, method: str, path: str
) -> None:
    caller = signed_in if path.startswith(("/session", "/sign_in", "/passkey", "/invitation_previews")) else operator
    path = path.format(uuid=uuid4(), id=1, delivery_id=1, user_id=1, invitation_id=1, name="one", version=1)
    for name, value in {"limits": "5", "Limit": "5", "wait ": "", "idempotency_key\n": "x"}.items():
        answer = await caller.request(method, path, key=str(uuid4()), params={name: value}, content="{}")
        assert field_of(answer) == name


async def test_a_known_parameter_beside_an_unknown_one(asking: Caller) -> None:
    assert field_of(await asking.get("/databases", params={"limit": "0", "starting_before": "x"})) == "starting_before"
