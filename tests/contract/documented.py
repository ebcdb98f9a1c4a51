"""A client made of the API's description alone: what is not described, it neither sends nor accepts."""

import json
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx
from jsonschema_rs import Draft202012Validator

from tests.support.routes import describe

OWN_KEYS = "FUZZING_KEYS"
"""The environment variable with the ids of the keys that a fuzzing run itself uses."""
OWN_TEAMS = "FUZZING_TEAMS"
"""The same with the teams of its users."""
IS_SHORT = "FUZZING_IS_SHORT"
"""Set when the run leaves out what a long one repeats."""


class Surprise(AssertionError):
    """An answer that the description doesn't tell of."""


@dataclass(frozen=True)
class Described:
    """One operation."""

    method: str
    path: str
    operation: dict[str, Any]


class Description:
    """The document, with its references followed and its schemas compiled, closed to fields that it doesn't name."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self._closed = json.loads(json.dumps(document["components"]))
        for schema in self._closed["schemas"].values():
            if schema.get("type") == "object":
                schema["additionalProperties"] = False
        self._validators: dict[str, Draft202012Validator] = {}
        self.operations = {
            operation["operationId"]: Described(method.upper(), path, operation)
            for path, item in document["paths"].items()
            for method, operation in item.items()
        }

    def resolve(self, node: dict[str, Any]) -> dict[str, Any]:
        """The node itself, or what its `$ref` points to."""
        while "$ref" in node:
            found: Any = self.document
            for part in node["$ref"].removeprefix("#/").split("/"):
                found = found[part]
            node = found
        return node

    def validate(self, schema: dict[str, Any], value: Any) -> None:
        """Raises `Surprise`."""
        key = json.dumps(schema)
        if key not in self._validators:
            self._validators[key] = Draft202012Validator({**schema, "components": self._closed}, validate_formats=True)
        faults = [f"{fault.instance_path}: {fault.message}" for fault in self._validators[key].iter_errors(value)]
        if faults:
            raise Surprise("; ".join(faults))

    def check(self, described: Described, answer: httpx.Response) -> None:
        """That the answer is one of those described: status, headers, body. Raises `Surprise`."""
        responses = described.operation["responses"]
        if str(answer.status_code) not in responses:
            raise Surprise(f"{answer.status_code} is not described: {answer.text}")
        response = self.resolve(responses[str(answer.status_code)])
        self._check_body(response.get("content"), answer)
        for name in answer.headers.keys() & {"ratelimit", "ratelimit-policy", "retry-after", "x-request-id"}:
            if name not in {header.lower() for header in response["headers"]}:
                raise Surprise(f"the header {name} is not described for {answer.status_code}")

    def _check_body(self, content: dict[str, Any] | None, answer: httpx.Response) -> None:
        if content is None:
            if answer.content:
                raise Surprise(f"a body is not described for {answer.status_code}")
            return
        kind = answer.headers["content-type"].partition(";")[0]
        if kind not in content:
            raise Surprise(f"{kind} is not described for {answer.status_code}")
        body = answer.json() if kind == "application/json" else answer.text
        self.validate(content[kind]["schema"], body)


class DocumentedClient:
    """Calls operations by their `operationId`, and checks each answer against the description."""

    def __init__(self, http: httpx.AsyncClient, api_key: str, description: Description | None = None) -> None:
        self._http = http
        self._api_key = api_key
        self.description = description or Description(describe())

    async def call(
        self, operation_id: str, body: Any = None, *, key: str | None = None, **given: Any
    ) -> httpx.Response:
        """`given` are the path and query parameters; `key` an Idempotency-Key, made up where one is required."""
        described = self.description.operations[operation_id]
        path, query, headers = described.path, {}, {"Authorization": f"Bearer {self._api_key}"}
        for parameter in described.operation["parameters"]:
            name, place = parameter["name"], parameter["in"]
            if place == "path":
                path = path.replace(f"{{{name}}}", str(given.pop(name)))
            elif place == "query" and name in given:
                query[name] = given.pop(name)
            elif place == "header":
                headers[name] = key or str(uuid4())
        assert not given, f"{operation_id} has no parameters {', '.join(given)}"
        answer = await self._http.request(
            described.method,
            path,
            params=query,
            headers=headers,
            content=None if body is None else json.dumps(body),
        )
        self.description.check(described, answer)
        return answer
