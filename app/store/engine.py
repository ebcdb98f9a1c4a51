"""Piccolo's engine on our own PostgreSQL. `app.store.session` gives it its address and its pool."""

from piccolo.engine.postgres import PostgresEngine


class _UnaddressedEngine(PostgresEngine):
    """Made at import, before the address is known; Piccolo's own would connect to a default one right away."""

    async def check_version(self) -> None:
        """The address comes later; `app.store.session` sets it."""

    async def prep_database(self) -> None:
        """No extension is needed."""


DB = _UnaddressedEngine(config={})
