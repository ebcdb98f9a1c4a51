"""What every resource's steps share: users, their requests, and sending one again."""

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tests.model.calls import World
from tests.model.expected import Model, Refusal, Sent, User

PLACES = st.integers(0, 1_000)
"""Which of the things at hand: taken modulo their number."""


class Steps(RuleBasedStateMachine):
    """Subclass it with a `world`."""

    world: World
    engines: frozenset[str]

    @initialize()
    def begin(self) -> None:
        self.model = Model()
        self.users = self.world.users()

    @precondition(lambda self: self.model.sent)
    @rule(which=PLACES)
    def send_again(self, which: int) -> None:
        sent = self._sent(which)
        answer = self.world.again(sent)
        assert answer.status_code == sent.status
        assert answer.json() == {
            **sent.answer,
            "request_id": answer.headers["X-Request-Id"],
            "idempotency_replay": True,
        }

    @precondition(lambda self: self.model.sent)
    @rule(which=PLACES)
    def send_another_with_the_same_key(self, which: int) -> None:
        answer = self.world.again(self._sent(which).changed())
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "idempotency_key_conflict")

    def _user(self, place: int) -> User:
        return self.users[place % len(self.users)]

    def _sent(self, place: int) -> Sent:
        return self.model.sent[place % len(self.model.sent)]

    def _change(self, user: User, operation: str, body: Any = None, **given: Any) -> Sent:
        sent = self.world.change(user, operation, body, **given)
        self.model.sent.append(sent)
        return sent

    @staticmethod
    def _refused(sent: Sent, refusal: Refusal) -> None:
        assert "error" in sent.answer, sent
        error = sent.answer["error"]
        assert (sent.status, error["code"], error.get("details", {}).get("field")) == (
            refusal.status,
            refusal.code,
            refusal.field,
        ), sent

    def _pages(self, user: User, operation: str, limit: int, cursor: str, **given: Any) -> list[dict[str, Any]]:
        """The whole list, page by page."""
        seen: list[dict[str, Any]] = []
        more = True
        while more:
            after = {"starting_after": seen[-1][cursor]} if seen else {}
            page = self.world.call(user, operation, limit=limit, **after, **given).json()
            assert page["data"] or not page["has_more"]
            seen, more = seen + page["data"], page["has_more"]
        return seen
