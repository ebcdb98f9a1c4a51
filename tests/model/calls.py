"""The model's hands: synchronous calls of the API, each checked against its description."""

import asyncio
import json
from typing import Any
from uuid import uuid4

import httpx

from app.auth.users import set_team
from app.store.session import fetch
from tests.contract.documented import Description
from tests.model.expected import Sent, Team, User
from tests.support.client import new_caller
from tests.support.routes import describe
from tests.support.store import store

DESCRIPTION = Description(describe())
_PLACES = ("uuid", "id")
"""Parameters in paths."""


class World:
    """A running service, and users of it."""

    def __init__(self, url: str, control_dsn: str) -> None:
        self.http = httpx.Client(base_url=url, timeout=90)
        self._dsn = control_dsn

    def users(self) -> list[User]:
        """Fresh ones: one with a pro team, one with a free team, and one in a pro team and in the free one."""
        return asyncio.run(self._make_users())

    def set_tier(self, team: Team, tier: str) -> None:
        asyncio.run(self._set_tier(team, tier))

    def call(
        self, user: User, operation: str, body: Any = None, key: str | None = None, **given: Any
    ) -> httpx.Response:
        """`given` are the path and query parameters."""
        described = DESCRIPTION.operations[operation]
        path = described.path
        for name in _PLACES:
            path = path.replace(f"{{{name}}}", str(given.get(name)))
        headers = {"Authorization": f"Bearer {user.api_key}"} | ({"Idempotency-Key": key} if key else {})
        answer = self.http.request(
            described.method,
            path,
            params={name: value for name, value in given.items() if name not in _PLACES},
            content=None if body is None else json.dumps(body),
            headers=headers,
        )
        DESCRIPTION.check(described, answer)
        assert answer.json()["request_id"] == answer.headers["X-Request-Id"]
        return answer

    def change(self, user: User, operation: str, body: Any = None, **given: Any) -> Sent:
        """A call with a fresh Idempotency-Key."""
        key = str(uuid4())
        answer = self.call(user, operation, body, key, **given)
        assert "idempotency_replay" not in answer.json()
        return Sent(user, key, operation, body, given, answer.status_code, answer.json())

    def again(self, sent: Sent) -> httpx.Response:
        return self.call(sent.user, sent.operation, sent.body, sent.key, **sent.given)

    async def _make_users(self) -> list[User]:
        async with httpx.AsyncClient() as unused, store(self._dsn):
            pro, free, both = [await new_caller(unused, self._dsn, tier=tier) for tier in ("pro", "free", "pro")]
            await fetch(
                "INSERT INTO memberships (user_id, team_id, role) VALUES ($1, $2, 'owner')", both.user_id, free.team_id
            )
        shared = Team(free.team_id, "Test User", "free")
        return [
            User("pro", pro.user_id, pro.api_key, [Team(pro.team_id, "Test User", "pro")]),
            User("free", free.user_id, free.api_key, [shared]),
            User("both", both.user_id, both.api_key, [Team(both.team_id, "Test User", "pro"), shared]),
        ]

    async def _set_tier(self, team: Team, tier: str) -> None:
        async with store(self._dsn):
            await set_team(team.id, tier=tier)
