"""Whether a server's clients are at work, so that the service's own work can give way to them."""

from typing import Any

from app.engines.naming import HELPER_SEPARATOR
from app.engines.postgres.dumps.helpers import PURPOSES

# Who waits for a lock, or sleeps, needs no processor; who waits for a table of this database may wait for the dump,
# which is sooner over at full speed. Sessions of roles that the administrator isn't a member of show nothing.
_AT_WORK = """
SELECT coalesce(bool_or(working), false) AND NOT coalesce(bool_or(held_up), false) FROM (
    SELECT state = 'active' AND coalesce(wait_event_type, '') NOT IN ('Lock', 'Timeout')
           OR state_change > clock_timestamp() - interval '1 second' AS working,
           datname = $1 AND wait_event_type = 'Lock' AND wait_event = 'relation' AS held_up
    FROM pg_stat_activity
    WHERE backend_type = 'client backend' AND usename <> current_user AND split_part(usename, $2, 2) <> ALL ($3)
) sessions
"""


async def at_work(connection: Any, database: str) -> bool:
    found: bool = await connection.fetchval(_AT_WORK, database, HELPER_SEPARATOR, list(PURPOSES))
    return found
