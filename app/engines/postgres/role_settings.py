"""Settings of a tenant for its own role, which would also apply to our sessions as the tenant.

A role may `ALTER ROLE … SET` every setting that needs no privilege: make its transactions read-only, end its statements
after a millisecond, or make `NULL = NULL` true.
"""

from typing import Any

# Of the settings without a privilege: our own ones for the role need one, and stay. Role and user can be set to the
# tenant itself only, the driver sets the encoding, and what isn't among the server's settings, such as `app.user`, has
# no meaning to it.
_CHANGED = """
SELECT name, coalesce(CASE WHEN source IN ('client', 'user', 'database', 'database user') THEN boot_val
                           ELSE reset_val END, '') AS value
FROM pg_settings
WHERE context = 'user' AND name NOT IN ('role', 'session_authorization', 'client_encoding') AND lower(name) = ANY(ARRAY(
    SELECT lower(split_part(entry, '=', 1)) FROM pg_db_role_setting, unnest(setconfig) AS entry
    WHERE setrole = (SELECT oid FROM pg_roles WHERE rolname = $1)
))
"""


def owner(name: str, user: str) -> dict[str, str]:
    """The setting of the role with which a session of ours as this login of a tenant begins: a login may have reset its
    own setting."""
    return {} if user == name else {"role": name}


async def server_values(connection: Any, name: str) -> dict[str, str]:
    """The values of these settings for a role without own settings, by name, for a session's start. `connection` is
    the administrator's."""
    return {row["name"]: row["value"] for row in await connection.fetch(_CHANGED, name)}
