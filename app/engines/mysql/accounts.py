"""The names of a tenant's accounts as SQL has them."""

from app.engines.base import Tenant
from app.engines.dumping import DumpPurpose
from app.engines.naming import HELPER_SEPARATOR, check_account

MAX_USER_NAME = 32
"""MySQL's limit in characters; MariaDB's is 80."""

LOAD_PURPOSE = "load"
PURPOSES = (*(purpose.value for purpose in DumpPurpose), LOAD_PURPOSE)


def account_name(user: str) -> str:
    """The only account of this user: a second host pattern could take precedence, with other rights."""
    return f"'{user}'@'%'"


def dump_helpers(name: str) -> frozenset[str]:
    """The accounts that read the tenant's database for dumps. They are ours, and outlive its revocation."""
    return frozenset(helper_name(name, purpose) for purpose in PURPOSES)


def helper_name(name: str, purpose: str) -> str:
    return f"{name}{HELPER_SEPARATOR}{purpose}"


def check_user(tenant: Tenant, user: str) -> None:
    """Raises `ValueError` unless `user` can be the name of a further account of this tenant."""
    check_account(tenant, user)
    if user == tenant.name or len(user) > MAX_USER_NAME:
        raise ValueError(f"a tenant's user has a name of its own, of {MAX_USER_NAME} characters at most")
