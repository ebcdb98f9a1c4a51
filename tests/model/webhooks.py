"""Webhook endpoints beside the model. Their receiver is a closed port: what is sent to it fails at once."""

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from app.outbox.event_types import EventType
from tests.model.expected import Endpoint, Refusal, User
from tests.model.steps import PLACES, Steps

RECEIVER = "https://127.0.0.1:9"
EVENTS = st.lists(st.sampled_from([event.value for event in EventType]), unique=True, max_size=3)
BAD_ENDPOINTS = st.sampled_from(
    [
        ({}, Refusal(422, "missing_required_field", "url")),
        ({"url": "http://127.0.0.1:9/"}, Refusal(422, "invalid_field", "url")),
        ({"url": "https://10.0.0.1/"}, Refusal(422, "invalid_field", "url")),
        ({"url": "https://[::1]/"}, Refusal(422, "invalid_field", "url")),
        ({"url": f"{RECEIVER}/", "events": ["database.exploded"]}, Refusal(422, "invalid_field", "events")),
        ({"url": f"{RECEIVER}/", "colour": "red"}, Refusal(422, "invalid_field", "colour")),
    ]
)


class WebhookSteps(Steps):
    @rule(who=PLACES, number=PLACES, events=EVENTS)
    def create_endpoint(self, who: int, number: int, events: list[str]) -> None:
        user, url = self._user(who), f"{RECEIVER}/{number}"
        sent = self._change(user, "createWebhookEndpoint", {"url": url, "events": events})
        assert sent.status == 201, sent.answer
        assert sent.answer["secret"].startswith("whsec_")
        made = Endpoint(sent.answer["data"]["id"], user.teams[0], url, events)
        assert made.id not in {endpoint.id for endpoint in self.model.endpoints}
        self.model.endpoints.append(made)
        _shows(sent.answer["data"], made)

    @rule(who=PLACES, bad=BAD_ENDPOINTS)
    def create_an_impossible_endpoint(self, who: int, bad: tuple[Any, Refusal]) -> None:
        body, refusal = bad
        self._refused(self.world.change(self._user(who), "createWebhookEndpoint", body), refusal)

    @rule(who=PLACES, limit=st.integers(1, 5))
    def list_endpoints(self, who: int, limit: int) -> None:
        user = self._user(who)
        expected = [endpoint for endpoint in reversed(self.model.endpoints) if endpoint.team in user.teams]
        seen = self._pages(user, "listWebhookEndpoints", limit, "id")
        assert [item["id"] for item in seen] == [endpoint.id for endpoint in expected]
        for item, endpoint in zip(seen, expected, strict=True):
            _shows(item, endpoint)

    @precondition(lambda self: self.model.endpoints)
    @rule(who=PLACES, which=PLACES)
    def revoke_endpoint(self, who: int, which: int) -> None:
        user, endpoint = self._user(who), self._endpoint(which)
        sent = self._change(user, "revokeWebhookEndpoint", id=endpoint.id)
        if self._open_to(user, endpoint):
            assert sent.answer["data"] == {"id": endpoint.id}
            endpoint.revoked = True
        else:
            self._refused(sent, Refusal(404, "not_found"))

    @precondition(lambda self: self.model.endpoints)
    @rule(who=PLACES, which=PLACES)
    def ping(self, who: int, which: int) -> None:
        user, endpoint = self._user(who), self._endpoint(which)
        answer = self.world.call(user, "testWebhookEndpoint", id=endpoint.id)
        if not self._open_to(user, endpoint):
            assert answer.status_code == 404
            return
        data = answer.json()["data"]
        assert (data["event_type"], data["status"], data["response_code"]) == ("ping", "failed", None)
        endpoint.pings.append(data["id"])

    @precondition(lambda self: self.model.endpoints)
    @rule(who=PLACES, which=PLACES, limit=st.integers(1, 5))
    def list_deliveries(self, who: int, which: int, limit: int) -> None:
        user, endpoint = self._user(who), self._endpoint(which)
        if endpoint.team not in user.teams:
            assert self.world.call(user, "listWebhookDeliveries", id=endpoint.id).status_code == 404
            return
        seen = self._pages(user, "listWebhookDeliveries", limit, "id", id=endpoint.id)
        assert [item["id"] for item in seen if item["event_type"] == "ping"] == endpoint.pings[::-1]
        wanted = set(endpoint.events or [event.value for event in EventType]) | {"ping"}
        assert {item["event_type"] for item in seen} <= wanted
        assert {item["endpoint_id"] for item in seen} <= {endpoint.id}

    def _endpoint(self, place: int) -> Endpoint:
        return self.model.endpoints[place % len(self.model.endpoints)]

    @staticmethod
    def _open_to(user: User, endpoint: Endpoint) -> bool:
        return endpoint.team in user.teams and not endpoint.revoked


def _shows(data: dict[str, Any], endpoint: Endpoint) -> None:
    assert {name: data[name] for name in ("id", "url", "events", "status", "team_id")} == {
        "id": endpoint.id,
        "url": endpoint.url,
        "events": endpoint.events,
        "status": "revoked" if endpoint.revoked else "active",
        "team_id": endpoint.team.id,
    }
    assert "secret" not in data
