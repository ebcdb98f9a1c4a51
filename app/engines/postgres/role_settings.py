"""What a tenant has set for its own role, which would come into force in our sessions as the tenant too.

A role may `ALTER ROLE … SET` every setting that needs no privilege: make its transactions read-only, end its statements
after a millisecond, or have `NULL = NULL` be true.
"""

from typing import Any

# Of the settings without a privilege: our own for the role take one, and are to stay. The role and the user can be set
# to the tenant itself only, the driver gives the encoding, and what is not among the server's settings, such as
# `app.user`, means nothing to it.
_CHANGED = """
SELECT name, coalesce(CASE WHEN source IN ('client', 'user', 'database', 'database user') THEN boot_val
                           ELSE reset_val END, '') AS value
FROM pg_settings
WHERE context = 'user' AND name NOT IN ('role', 'session_authorization', 'client_encoding') AND lower(name) = ANY(ARRAY(
    SELECT lower(split_part(entry, '=', 1)) FROM pg_db_role_setting, unnest(setconfig) AS entry
    WHERE setrole = (SELECT oid FROM pg_roles WHERE rolname = $1)
))
"""


async def server_values(connection: Any, name: str) -> dict[str, str]:
    """What these settings are for a role that has set nothing, by name, as a session is begun with. `connection` is the
    administrator's."""
    return {row["name"]: row["value"] for row in await connection.fetch(_CHANGED, name)}
