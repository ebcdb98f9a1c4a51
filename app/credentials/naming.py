"""What accounts of a database are called on its host. A revision is used once, so no name ever comes again."""

from app.engines.naming import HELPER_SEPARATOR, LOGIN_PURPOSE, USER_PURPOSE


def rotated_login(engine_name: str, revision: int) -> str:
    """The account that a rotation makes, on engines on which it makes one."""
    return f"{engine_name}{HELPER_SEPARATOR}{LOGIN_PURPOSE}{revision}"


def user_login(engine_name: str, revision: int) -> str:
    """The account of a user."""
    return f"{engine_name}{HELPER_SEPARATOR}{USER_PURPOSE}{revision}"
