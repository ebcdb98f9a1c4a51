"""Piccolo's engine for our own PostgreSQL. `app.store.session` sets its address and pool."""

from piccolo.engine.postgres import PostgresEngine

from app.core.limiter import Limiter

_LEAST = 4
"""Of a small pool nobody's share is smaller: a request that holds a lock on a connection takes a second one."""


class _UnaddressedEngine(PostgresEngine):
    """Created at import, before the address is known. Piccolo's own class would connect to a default address at
    once."""

    shares: Limiter[int]
    """By user: how many of the pool's connections their requests have."""

    async def check_version(self) -> None:
        """Does nothing: the address is set later, by `app.store.session`."""

    async def prep_database(self) -> None:
        """Does nothing: no extension is needed."""

    def share(self, connections: int) -> None:
        """Divides a pool of so many connections: what one user asks for takes two fifths of them at most, so that
        statements of theirs which take long, or wait for each other, hold up nobody else's."""
        self.shares = Limiter[int](max(_LEAST, connections * 2 // 5))


DB = _UnaddressedEngine(config={})
