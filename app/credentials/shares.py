"""How a database's connections are shared among its logins: together they never have more than the database's limit,
and its own login keeps at least one."""

from collections.abc import Sequence

from app.core.errors import InvalidField
from app.credentials import users

_OWN = 1
"""The connections that the database's own login keeps."""
_PART = 4
"""A user gets the database's connections divided by this, unless its request says otherwise."""


def for_user(connections: int, taken: Sequence[int], asked: int | None) -> int:
    """What a new user gets of a database's `connections`, of which others have `taken`. Raises `InvalidField` where
    less is left."""
    left = connections - _OWN - sum(taken)
    share = max(1, connections // _PART) if asked is None else asked
    if share > left:
        raise InvalidField(
            "connection_limit",
            f"The database may have {connections} connections open, and {max(left, 0)} of them are left for users.",
        )
    return share


async def check_limit(database_id: int, connections: int) -> None:
    """Checks that a database's limit may become `connections`, in a transaction that has its row locked. Raises
    `InvalidField` where its users have more."""
    taken = [user.connection_limit for user in await users.list_of(database_id)]
    least = sum(taken) + _OWN
    if taken and connections < least:
        raise InvalidField(
            "connection_hard_limit", f"The database's users have {least - _OWN} connections; it needs {least} at least."
        )
