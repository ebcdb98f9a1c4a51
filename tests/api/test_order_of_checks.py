"""What is checked first decides which error a client sees: path, key, scope, header, body, resource."""

import pytest

from tests.support.answers import error_of
from tests.support.client import Caller
from tests.support.in_process import LoneApi

NOWHERE = "/databases/8a3f7c1e-52d4-4b0e-9a67-1c2d3e4f5a6b"
WRITES = [
    ("POST", "/databases"),
    ("PATCH", NOWHERE),
    ("PATCH", f"{NOWHERE}/quotas"),
    ("DELETE", NOWHERE),
]


async def test_path_and_method_before_the_key(shared: LoneApi) -> None:
    error_of(await shared.http.get("/api/v1/nothing"), 404, "not_found")
    error_of(await shared.http.put("/api/v1/me"), 405, "method_not_allowed")


@pytest.mark.parametrize(("method", "path"), WRITES)
async def test_the_key_before_everything_of_the_request(shared: LoneApi, method: str, path: str) -> None:
    error_of(await shared.http.request(method, f"/api/v1{path}", content=b"{"), 401, "unauthorized")


@pytest.mark.parametrize(("method", "path"), WRITES)
async def test_the_scope_before_header_and_body(shared: LoneApi, method: str, path: str) -> None:
    caller = await shared.caller(scopes=("databases:read",))
    error = error_of(await caller.request(method, path, content=b"{"), 403, "insufficient_scope")
    assert error["details"] == {"required": "databases:write"}


@pytest.mark.parametrize(("method", "path"), WRITES)
async def test_the_header_before_the_body(asking: Caller, method: str, path: str) -> None:
    error = error_of(await asking.request(method, path, content=b"{"), 422, "missing_required_field")
    assert error["details"] == {"field": "Idempotency-Key"}


@pytest.mark.parametrize(("method", "path"), WRITES)
async def test_the_body_before_the_resource(asking: Caller, method: str, path: str) -> None:
    error_of(await asking.request(method, path, key="k", content=b"{"), 400, "malformed_json")


@pytest.mark.parametrize(("method", "path"), WRITES[1:])
async def test_the_resource_last(asking: Caller, method: str, path: str) -> None:
    body = None if method == "DELETE" else {} if path.endswith("quotas") else {"name": "a"}
    error_of(await asking.request(method, path, key=method + path, json=body), 404, "not_found")
