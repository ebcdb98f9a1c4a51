"""Checks that apply to every answer. Interface specification, sections 1, 2.10 and 2.11."""

from typing import Any

import httpx


def body_of(answer: httpx.Response, status: int = 200) -> dict[str, Any]:
    """The JSON body, after checking the request's id in body and header."""
    assert answer.status_code == status, answer.text
    assert answer.headers["Content-Type"].startswith("application/json")
    body: dict[str, Any] = answer.json()
    assert body["request_id"]
    assert body["request_id"] == answer.headers["X-Request-Id"]
    return body


def data_of(answer: httpx.Response, status: int = 200) -> Any:
    return body_of(answer, status)["data"]


def error_of(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """The error, after checking that the envelope is exactly as specified."""
    body = body_of(answer, status)
    assert body.keys() - {"idempotency_replay"} == {"error", "request_id"}
    error: dict[str, Any] = body["error"]
    assert {"code", "message"} <= error.keys() <= {"code", "message", "details"}
    assert error["code"] == code
    assert error["message"]
    return error


def field_of(answer: httpx.Response, code: str = "invalid_field") -> str:
    """The field in a 422's details."""
    field: str = error_of(answer, 422, code)["details"]["field"]
    return field
