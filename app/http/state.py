"""What the API's start-up opens, and routes are handed as dependencies."""

from litestar.di import Provide

from app.queries.service import Questions
from app.web.services import Services
from app.webhooks.ping import Pings


class AppState:
    """Of one application; empty until it has started. What gives it out takes no arguments: those of a dependency are
    validated with each request, which costs more than all else about it."""

    services: Services
    pings: Pings
    questions: Questions

    def dependencies(self) -> dict[str, Provide]:
        """By the names of the routes' parameters."""
        given = {"services": self._services, "pings": self._pings, "questions": self._questions}
        return {name: Provide(give, sync_to_thread=False) for name, give in given.items()}

    def _services(self) -> Services:
        return self.services

    def _pings(self) -> Pings:
        return self.pings

    def _questions(self) -> Questions:
        return self.questions
