"""A client of the API that behaves as a careful one should: whatever happens, it retries with the same key."""

import asyncio
import random
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.support.stack import LiveStack

_RETRY_SECONDS = 0.1
_IN_PROGRESS = "idempotency_key_in_progress"


@dataclass(frozen=True)
class Answered:
    """The final answer to one request, with what it took to get it."""

    status: int
    body: dict[str, Any]
    tries: int
    seconds: float

    @property
    def data(self) -> Any:
        assert self.status < 300, self.body
        return self.body["data"]


@dataclass
class PatientClient:
    """`strange` collects answers that a client should never meet, whatever is down."""

    http: httpx.AsyncClient
    patience: float = 60
    proxied: bool = False
    """Whether a proxy answers for an API that died with a request: 502 or 504, without a body."""
    strange: list[str] = field(default_factory=list)

    async def create(self, db_type: str, *, key: str | None = None, wait: float | None = 30, **body: Any) -> Answered:
        query = f"?wait=true&timeout={wait:g}" if wait is not None else ""
        return await self.send("POST", f"/databases{query}", key, {"name": "a-database", "db_type": db_type, **body})

    async def delete(self, database: str, *, key: str | None = None) -> Answered:
        return await self.send("DELETE", f"/databases/{database}", key)

    async def get(self, database: str) -> Answered:
        return await self.send("GET", f"/databases/{database}")

    async def send(self, method: str, path: str, key: str | None = None, body: Any = None) -> Answered:
        """Retries what has no final answer yet. Fails when there is none after `patience` seconds."""
        headers = {"Idempotency-Key": key or str(uuid.uuid4())}
        started = time.monotonic()
        tries = 0
        answer = "nothing was sent"
        while time.monotonic() < started + self.patience:
            tries += 1
            try:
                response = await self.http.request(method, path, json=body, headers=headers)
            except httpx.TransportError as fault:
                answer = f"{type(fault).__name__}: {fault}"
            else:
                if self._is_final(response):
                    return Answered(response.status_code, response.json(), tries, time.monotonic() - started)
                answer = response.text
            await asyncio.sleep(_RETRY_SECONDS * random.uniform(0.5, 1.5))
        raise AssertionError(f"no final answer to {method} {path} in {self.patience} s; the last: {answer}")

    def _is_final(self, response: httpx.Response) -> bool:
        if response.status_code >= 500:
            of_proxy = self.proxied and response.status_code in (502, 504) and not response.content
            if response.status_code != 503 and not of_proxy:
                self.strange.append(f"{response.request.method} {response.url.path}: {response.text}")
            return False
        return not (response.status_code == 409 and response.json()["error"]["code"] == _IN_PROGRESS)


@asynccontextmanager
async def client_of(stack: LiveStack, *, patience: float = 60) -> AsyncIterator[PatientClient]:
    """A client with the stack's own key."""
    url, headers = f"{stack.file.api_url}/api/v1", {"Authorization": f"Bearer {stack.file.api_key}"}
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=40, trust_env=False) as http:
        yield PatientClient(http, patience)
