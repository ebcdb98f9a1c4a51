"""What the API opens at start-up and passes to routes as dependencies."""

from litestar.di import Provide

from app.queries.service import Questions
from app.web.services import Services
from app.webhooks.ping import Pings


class AppState:
    """The open resources of one application; empty until it has started. The providers take no arguments, because
    Litestar validates a provider's arguments in each request, which costs more than all else about it."""

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
