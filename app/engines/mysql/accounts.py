"""The names of a tenant's accounts as SQL has them."""

from app.engines.base import Tenant
from app.engines.naming import check_account

MAX_USER_NAME = 32
"""MySQL's limit in characters; MariaDB's is 80."""


def account_name(user: str) -> str:
    """The only account of this user: a second host pattern could take precedence, with other rights."""
    return f"'{user}'@'%'"


def check_user(tenant: Tenant, user: str) -> None:
    """Raises `ValueError` unless `user` can be the name of a further account of this tenant."""
    check_account(tenant, user)
    if user == tenant.name or len(user) > MAX_USER_NAME:
        raise ValueError(f"a tenant's user has a name of its own, of {MAX_USER_NAME} characters at most")
