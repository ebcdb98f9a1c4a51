"""The responses of an operation in OpenAPI: successes, and errors from the error classes."""

import inspect
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from app.core.errors import AppError
from app.http.json_schemas import reference
from app.web.envelope import ErrorAnswer, encode
from app.web.operation import Operation

_REASONS = {
    200: "Done.",
    201: "Created.",
    202: "Accepted; the work goes on.",
    204: "There is nothing more to come.",
}
_NAMES = {
    "400": "MalformedBody",
    "401": "Unauthorized",
    "403": "Forbidden",
    "404": "NotFound",
    "405": "MethodNotAllowed",
    "408": "RequestTimeout",
    "409": "Conflict",
    "413": "PayloadTooLarge",
    "422": "Invalid",
    "429": "TooManyRequests",
    "500": "InternalError",
    "503": "Unavailable",
}
_ALLOWANCE = ("RateLimit-Policy", "RateLimit")
_GET_OPERATION = "getOperation"
_EXAMPLE_REQUEST_ID = "req_3f1c0d9be2a4475d8c6b7a10"

HEADERS: dict[str, dict[str, Any]] = {
    "X-Request-Id": {"description": "This request's id, as in the body.", "schema": {"type": "string"}},
    "RateLimit-Policy": {
        "description": "The key's limit: requests in a window of seconds.",
        "schema": {"type": "string"},
        "example": '"permin";q=120;w=60',
    },
    "RateLimit": {
        "description": "What is left of it, and the seconds until the next window. On every answer to a key that "
        "was let in or has used up its requests.",
        "schema": {"type": "string"},
        "example": '"permin";r=119;t=60',
    },
    "Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer", "minimum": 1}},
    "WWW-Authenticate": {"description": "How to authenticate.", "schema": {"const": "Bearer"}},
    "Allow": {"description": "The methods of the path.", "schema": {"type": "string"}},
}
"""`components.headers`."""


def responses(declared: Operation) -> dict[str, Any]:
    """The successful responses, by status."""
    return {str(status): _answer(declared, status) for status in declared.answers}


def _answer(declared: Operation, status: int) -> dict[str, Any]:
    described: dict[str, Any] = {
        "description": _REASONS[status],
        "headers": _header_references("X-Request-Id", *_ALLOWANCE),
    }
    texts = _texts(declared) if status == 200 else {}
    if declared.answers[status] is None:
        return described | ({"content": texts} if texts else {})
    if declared.events is not None:
        return described | _stream(declared.events, declared.answers[status], declared.examples[status])
    media: dict[str, Any] = {"schema": reference(declared.answers[status])}
    if status in declared.examples:
        example = msgspec.json.decode(encode(declared.examples[status]))
        media["example"] = {**example, "request_id": _EXAMPLE_REQUEST_ID}
    described["content"] = {"application/json": media} | texts
    links = {name: _link(name, declared.link_by, f"/data/{declared.link_by}") for name in declared.links}
    if _names_operation(declared.answers[status]):
        links[_GET_OPERATION] = _link(_GET_OPERATION, "uuid", "/operation/uuid")
    return described | ({"links": links} if links else {})


def _texts(declared: Operation) -> dict[str, Any]:
    return {kind: {"schema": {"type": "string"}, "example": text} for kind, text in declared.texts.items()}


def _names_operation(answer: Any) -> bool:
    """Whether the answer names the operation that follows it."""
    return any(field.name == "operation" for field in msgspec.structs.fields(answer))


def _link(operation_id: str, parameter: str, pointer: str) -> dict[str, Any]:
    return {"operationId": operation_id, "parameters": {parameter: f"$response.body#{pointer}"}}


def _stream(event: str, data: type[msgspec.Struct], example: msgspec.Struct) -> dict[str, Any]:
    """A response with Server-Sent Events. What OpenAPI 3.1 can't describe of them is in words."""
    fields = {
        "id": {"type": "string"},
        "event": {"const": event},
        "data": {"type": "string", "contentMediaType": "application/json", "contentSchema": reference(data)},
    }
    text = f"id: 3\nevent: {event}\ndata: {msgspec.json.encode(example).decode()}\n\n"
    return {
        "description": f"A stream of Server-Sent Events, open until the end. Each event `{event}` has the whole "
        f"`{data.__name__}` as its data, and its version as its id. Comments keep the connection alive. A client that "
        "comes back with `Last-Event-ID` gets what has changed since.",
        # The text as it comes, for generated clients; or event by event, for clients that read such streams.
        "content": {
            "text/event-stream": {
                "schema": {
                    "anyOf": [
                        {"type": "string"},
                        {"type": "object", "required": list(fields), "properties": fields},
                    ]
                },
                "example": text,
            }
        },
    }


def error_responses(errors: Iterable[type[AppError]]) -> dict[str, Any]:
    """One response for each status of these errors. All share one schema, so that generators don't create a class
    for each; the description and the examples show the possible codes."""
    by_status: dict[int, list[type[AppError]]] = defaultdict(list)
    for error in dict.fromkeys(errors):
        by_status[error.status].append(error)
    return {str(status): _refusal(status, kinds) for status, kinds in sorted(by_status.items())}


def _refusal(status: int, kinds: Sequence[type[AppError]]) -> dict[str, Any]:
    headers = ["X-Request-Id"]
    headers += ["WWW-Authenticate"] if status == 401 else _ALLOWANCE
    headers += ["Retry-After"] if status in (429, 503) else []
    headers += ["Allow"] if status == 405 else []
    examples = {kind.code: {"$ref": f"#/components/examples/{kind.code}"} for kind in kinds}
    return {
        "description": "\n\n".join(f"`{kind.code}`: {inspect.getdoc(kind)}" for kind in kinds),
        "headers": _header_references(*headers),
        "content": {"application/json": {"schema": reference(ErrorAnswer), "examples": examples}},
    }


def error_examples() -> dict[str, Any]:
    """`components.examples`: one for each error."""
    return {kind.code: _error_example(kind) for kind in AppError.__subclasses__()}


def _error_example(kind: type[AppError]) -> dict[str, Any]:
    error: dict[str, Any] = {"code": kind.code, "message": inspect.getdoc(kind)}
    if kind.example_details is not None:
        error["details"] = dict(kind.example_details)
    return {"value": {"error": error, "request_id": _EXAMPLE_REQUEST_ID}}


def share_error_responses(operations: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Moves error responses that several operations share out of them, and returns them as `components.responses`.
    Each is named for its status; of several with the same status the most common one is shared."""
    counts = Counter(
        (status, msgspec.json.encode(answer))
        for operation in operations
        for status, answer in operation["responses"].items()
        if int(status) >= 400
    )
    shared: dict[str, bytes] = {}
    for (status, answer), uses in counts.most_common():
        if uses > 1:
            shared.setdefault(status, answer)
    for operation in operations:
        _refer(operation["responses"], shared)
    return {_NAMES[status]: msgspec.json.decode(shared[status]) for status in sorted(shared)}


def _refer(responses: dict[str, Any], shared: Mapping[str, bytes]) -> None:
    for status, answer in responses.items():
        if shared.get(status) == msgspec.json.encode(answer):
            responses[status] = {"$ref": f"#/components/responses/{_NAMES[status]}"}


def _header_references(*names: str) -> dict[str, Any]:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}
