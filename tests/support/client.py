"""A caller of the API: a user's key, and the common requests of tests."""

import json
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import httpx

from app.auth.keys import KeyControls, create_key
from app.auth.scopes import OPERATOR_SCOPES, TEAM_SCOPES, Scope
from app.auth.users import create_user, set_operator
from tests.support.store import store
from tests.support.waiting import until

ALL_SCOPES = tuple(scope.value for scope in TEAM_SCOPES)
OPERATOR_TOO = tuple(scope.value for scope in Scope)
UNHURRIED = KeyControls(requests_per_minute=100_000)
"""Controls so high that no test meets a limit by accident."""


@dataclass(frozen=True)
class Caller:
    """One API key. Paths are relative to `/api/v1`."""

    http: httpx.AsyncClient
    api_key: str = field(repr=False)
    user_id: int
    team_id: int
    key_id: int

    async def request(self, method: str, path: str, *, key: str | None = None, **options: Any) -> httpx.Response:
        """`key` is the Idempotency-Key. Further options are httpx's."""
        headers = {"Authorization": f"Bearer {self.api_key}", **options.pop("headers", {})}
        if key is not None:
            headers["Idempotency-Key"] = key
        return await self.http.request(method, f"/api/v1{path}", headers=headers, **options)

    async def get(self, path: str, **options: Any) -> httpx.Response:
        return await self.request("GET", path, **options)

    async def post(self, path: str, body: Any, *, key: str | None = None, **options: Any) -> httpx.Response:
        """With a new Idempotency-Key, unless one is given."""
        return await self.request("POST", path, content=json.dumps(body), key=key or str(uuid4()), **options)

    async def patch(self, path: str, body: Any, *, key: str | None = None) -> httpx.Response:
        return await self.request("PATCH", path, content=json.dumps(body), key=key or str(uuid4()))

    async def delete(self, path: str, *, key: str | None = None) -> httpx.Response:
        return await self.request("DELETE", path, key=key or str(uuid4()))

    async def create(
        self, name: str = "db", *, wait: bool = False, key: str | None = None, **fields: Any
    ) -> httpx.Response:
        """`POST /databases`; `fields` are further fields of the body."""
        params = {"wait": "true", "timeout": "60"} if wait else {}
        return await self.post("/databases", {"name": name, **fields}, key=key, params=params)

    async def created(self, name: str = "db", **fields: Any) -> dict[str, Any]:
        """An active database: the data of its create's answer."""
        answer = await self.create(name, wait=True, **fields)
        assert answer.status_code in (201, 202), answer.text
        data: dict[str, Any] = answer.json()["data"]
        return data if answer.status_code == 201 else await until(lambda: self._active(data["uuid"]))

    async def _active(self, uuid: str) -> dict[str, Any]:
        """The database; empty before it is active, which may take longer than any answer waits."""
        answer = await self.get(f"/databases/{uuid}")
        assert answer.status_code == 200, answer.text
        data: dict[str, Any] = answer.json()["data"]
        return data if data["status"] == "active" else {}


async def new_caller(
    http: httpx.AsyncClient,
    control_dsn: str,
    *,
    tier: str = "pro",
    scopes: tuple[str, ...] = ALL_SCOPES,
    controls: KeyControls = UNHURRIED,
) -> Caller:
    """A new user with a team of that tier, and a key; an operator, where the scopes are for those."""
    async with store(control_dsn):
        user = await create_user(email=f"{uuid4().hex}@example.com", name="Test User", tier=tier)
        if OPERATOR_SCOPES.intersection(scopes):
            await set_operator(user.user_id, True)
        key = await create_key(user_id=user.user_id, name="test key", scopes=scopes, controls=controls)
    return Caller(http, key.api_key, user.user_id, user.team_id, key.id)
