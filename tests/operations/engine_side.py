"""What an engine host really has of some databases, read past the service."""

from collections.abc import Mapping
from dataclasses import dataclass

import asyncpg

from tests.mysql_client import query
from tests.servers import RunningServer


@dataclass(frozen=True)
class Seen:
    """A database on its host. `open` is whether its login may log in, `connections` how many that one may have."""

    open: bool
    connections: int


async def seen_on(server: RunningServer, logins: Mapping[str, str]) -> dict[str, Seen]:
    """By name of a database, those of `logins` that are there, whose values are what they log in as. One that is there
    in part counts as closed."""
    return await (_on_postgres if server.flavour == "postgres" else _on_mysql)(server, logins)


async def _on_postgres(server: RunningServer, logins: Mapping[str, str]) -> dict[str, Seen]:
    connection = await asyncpg.connect(server.admin_dsn)
    try:
        rows = await connection.fetch(
            "SELECT known.name, coalesce(d.datallowconn AND r.rolcanlogin, false), coalesce(r.rolconnlimit, 0)"
            " FROM unnest($1::text[], $2::text[]) AS known (name, login)"
            " LEFT JOIN pg_database d ON d.datname = known.name LEFT JOIN pg_roles r ON r.rolname = known.login"
            " WHERE d.oid IS NOT NULL OR r.oid IS NOT NULL",
            list(logins),
            list(logins.values()),
        )
    finally:
        await connection.close()
    return {name: Seen(open, connections) for name, open, connections in rows}


_LOCKED = {
    "mysql": "SELECT user, account_locked = 'Y', max_user_connections FROM mysql.user",
    "mariadb": "SELECT g.user, coalesce(json_value(g.priv, '$.account_locked'), 0) = 1, u.max_user_connections"
    " FROM mysql.global_priv g JOIN mysql.user u ON u.user = g.user AND u.host = g.host",
}


async def _on_mysql(server: RunningServer, logins: Mapping[str, str]) -> dict[str, Seen]:
    databases = {name for (name,) in await query(server, "SELECT schema_name FROM information_schema.schemata")}
    accounts = {name: (not locked, limit) for name, locked, limit in await query(server, _LOCKED[server.flavour])}
    seen = {}
    for name, login in logins.items():
        if name in databases or login in accounts:
            is_open, connections = accounts.get(login, (False, 0))
            seen[name] = Seen(open=bool(is_open) and name in databases, connections=int(connections))
    return seen
