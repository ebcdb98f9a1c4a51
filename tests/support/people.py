"""People with a browser: their session's cookie, and what browsers say of where a request comes from."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import httpx

from app.accounts.sessions.links import make_link
from tests.support.client import Caller
from tests.support.store import store

COOKIE = "headwater_session"


@dataclass(frozen=True)
class Person:
    """One session. Paths are relative to `/api/v1`."""

    http: httpx.AsyncClient
    token: str = field(repr=False)
    user_id: int
    team_id: int
    origin: str
    cookie: str = COOKIE

    @property
    def from_a_page(self) -> dict[str, str]:
        """What a page of ours has its browser send."""
        return {"Origin": self.origin, "Sec-Fetch-Site": "same-origin", "Cookie": f"{self.cookie}={self.token}"}

    async def request(self, method: str, path: str, *, key: str | None = None, **options: Any) -> httpx.Response:
        """`key` is the Idempotency-Key. Further options are httpx's; `headers` replace a page's own, and those that are
        empty are left out."""
        headers = self.from_a_page | {"Idempotency-Key": key or ""} | dict(options.pop("headers", {}))
        sent = {name: value for name, value in headers.items() if value}
        answer = await self.http.request(method, f"/api/v1{path}", headers=sent, **options)
        # The client is everybody's.
        self.http.cookies.clear()
        return answer

    async def get(self, path: str, **options: Any) -> httpx.Response:
        return await self.request("GET", path, **options)

    async def post(self, path: str, body: Any, **options: Any) -> httpx.Response:
        return await self.request("POST", path, key=str(uuid4()), content=json.dumps(body), **options)

    async def delete(self, path: str, **options: Any) -> httpx.Response:
        return await self.request("DELETE", path, key=str(uuid4()), **options)


async def link_for(control_dsn: str, user_id: int, *, seconds: float = 600) -> str:
    """The token of a new link to sign in with."""
    async with store(control_dsn):
        return (await make_link(user_id, "http://test", seconds)).url.partition("#")[2]


async def follow(http: httpx.AsyncClient, token: str, *, headers: Mapping[str, str] | None = None) -> httpx.Response:
    """What the page does that a link leads to."""
    page = {"Origin": str(http.base_url).rstrip("/"), "Sec-Fetch-Site": "same-origin"}
    sent = {name: value for name, value in (page | dict(headers or {})).items() if value}
    answer = await http.post("/api/v1/sign_ins/links", json={"token": token}, headers=sent)
    http.cookies.clear()
    return answer


def cookie_of(answer: httpx.Response) -> tuple[str, str]:
    """The name and the value that an answer sets."""
    name, _, value = answer.headers["Set-Cookie"].partition(";")[0].partition("=")
    return name, value


async def sign_in(http: httpx.AsyncClient, control_dsn: str, caller: Caller) -> Person:
    """The user of that key, signed in by a link."""
    answer = await follow(http, await link_for(control_dsn, caller.user_id))
    assert answer.status_code == 201, answer.text
    name, token = cookie_of(answer)
    return Person(http, token, caller.user_id, caller.team_id, str(http.base_url).rstrip("/"), name)
