"""Names and literals for SQL text, where a driver can't pass a parameter."""

import re

import msgspec

from app.engines.base import Login, Tenant

_NAME = re.compile(r"[a-z][a-z0-9]{0,31}\Z")
_ACCOUNT = re.compile(r"(?:_[lu][1-9][0-9]{0,18})?\Z")

MARKER_PREFIX = "headwater:"
"""The beginning of all our markers."""
INSTALLATION_SEPARATOR = "@"
"""Between a marker and the installation that wrote it."""
HELPER_SEPARATOR = "_"
"""A tenant's helper roles are named `<name>_<purpose>`. No tenant's own name contains the separator, so a helper
always belongs to exactly one tenant."""
LOGIN_PURPOSE = "l"
"""The logins that rotations make are `<name>_l<number>`."""
USER_PURPOSE = "u"
"""The users of a database are `<name>_u<number>`."""


def check_tenant(tenant: Tenant) -> None:
    """Raises `ValueError` unless name, password and marker are safe to write into a statement."""
    check_name(tenant.name)
    if tenant.login:
        check_account(tenant, tenant.login)
    for what, text in (("password", tenant.password), ("marker", tenant.marker)):
        if not text.isascii() or not text.isprintable() or "\\" in text:
            raise ValueError(f"a tenant's {what} is printable ASCII without a backslash")


def check_login(tenant: Tenant, login: Login) -> None:
    """Raises `ValueError` unless the login is the tenant's and safe to write into a statement."""
    check_account(tenant, login.name)
    check_tenant(msgspec.structs.replace(tenant, password=login.password, login=""))
    if login.connections is not None and login.connections < 1:
        raise ValueError("a connection limit is at least 1")


def check_user(tenant: Tenant, account: str) -> None:
    """Raises `ValueError` unless this is the name of a user of the tenant's database."""
    check_account(tenant, account)
    if not account.startswith(f"{tenant.name}{HELPER_SEPARATOR}{USER_PURPOSE}"):
        raise ValueError("a user of a tenant's database is named <name>_u<number>")


def check_account(tenant: Tenant, account: str) -> None:
    """Raises `ValueError` unless this is the tenant's own account, a login of a rotation or a user."""
    purpose = account.removeprefix(tenant.name)
    if account != tenant.name + purpose or not _ACCOUNT.match(purpose):
        raise ValueError("a tenant's account is named <name>, <name>_l<number> or <name>_u<number>")


def written_marker(tenant: Tenant, installation: str) -> str:
    """A tenant's marker as it is written on the host, with the installation, which may be empty."""
    return f"{tenant.marker}{INSTALLATION_SEPARATOR}{installation}" if installation else tenant.marker


def read_marker(written: str) -> tuple[str, str]:
    """Splits a written marker into the tenant's marker and the installation that wrote it, which may be empty."""
    marker, _, installation = written.partition(INSTALLATION_SEPARATOR)
    return marker, installation


def check_name(name: str) -> None:
    """Raises `ValueError` for anything but `[a-z][a-z0-9]{0,31}`: MySQL's GRANT reads `_` and `%` as wildcards."""
    if not _NAME.match(name):
        raise ValueError("a tenant's name matches ^[a-z][a-z0-9]{0,31}$")


def literal(text: str) -> str:
    """A string literal for either engine. `check_tenant` has excluded backslashes, which MySQL would read as
    escapes."""
    return "'" + text.replace("'", "''") + "'"
