"""The administrator's work inside a tenant's database."""

from typing import Any

import asyncpg

from app.engines.postgres import freezing
from app.engines.postgres.connections import PostgresConnections
from app.engines.postgres.sessions import end_present_sessions


class TenantDatabase:
    """Each method opens a session in the database of that name. The caller holds the tenant's lock."""

    def __init__(self, connections: PostgresConnections) -> None:
        self._connections = connections

    async def give_schema(self, name: str) -> None:
        async with self._connections.admin_in(name) as connection:
            try:
                await connection.execute(f'ALTER SCHEMA public OWNER TO "{name}"')
            except asyncpg.InvalidSchemaNameError:  # the tenant may drop what it owns
                await connection.execute(f'CREATE SCHEMA public AUTHORIZATION "{name}"')

    async def freeze(self, connection: Any, name: str) -> None:
        """Call it after the database's own grants have changed: from then on nothing new can be created.
        `connection` is the administrator's, to end the tenant's sessions."""
        async with self._connections.admin_in(name) as inside:
            if await freezing.is_complete(inside):
                await freezing.take_writes(inside)
                return
            await freezing.take_writes(inside)
            # A running statement was checked with the former rights.
            await end_present_sessions(connection, name)
            # And an open transaction may have created something that is visible only after its end.
            await freezing.take_writes(inside)
            await freezing.mark_complete(inside)

    async def is_frozen(self, name: str) -> bool:
        async with self._connections.admin_in(name) as inside:
            return await freezing.is_begun(inside)

    async def thaw(self, name: str) -> None:
        async with self._connections.admin_in(name) as inside:
            await freezing.give_writes(inside)
