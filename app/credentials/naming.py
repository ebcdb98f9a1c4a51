"""What accounts of a database are called on its host. A revision is used once, so no name ever comes again."""

from app.engines.naming import HELPER_SEPARATOR, LOGIN_PURPOSE, USER_PURPOSE


def rotated_login(engine_name: str, revision: int) -> str:
    """The account that a rotation makes, on engines on which it makes one."""
    return f"{engine_name}{HELPER_SEPARATOR}{LOGIN_PURPOSE}{revision}"


def user_login(engine_name: str, revision: int) -> str:
    """The account of a user."""
    return f"{engine_name}{HELPER_SEPARATOR}{USER_PURPOSE}{revision}"


def is_user_login(account: str) -> bool:
    """Whether an account that is not the database's first is, or was, a user's."""
    return account.partition(HELPER_SEPARATOR)[2].startswith(USER_PURPOSE)
