"""Piccolo's engine for our own PostgreSQL. `app.store.session` sets its address and pool."""

from piccolo.engine.postgres import PostgresEngine


class _UnaddressedEngine(PostgresEngine):
    """Created at import, before the address is known. Piccolo's own class would connect to a default address at
    once."""

    async def check_version(self) -> None:
        """Does nothing: the address is set later, by `app.store.session`."""

    async def prep_database(self) -> None:
        """Does nothing: no extension is needed."""


DB = _UnaddressedEngine(config={})
