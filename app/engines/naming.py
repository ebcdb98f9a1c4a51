"""Names and literals for SQL text, where a driver can't pass a parameter."""

import re

from app.engines.base import Tenant

_NAME = re.compile(r"[a-z][a-z0-9]{0,31}\Z")

MARKER_PREFIX = "headwater:"
"""The beginning of all our markers."""
INSTALLATION_SEPARATOR = "@"
"""Between a marker and the installation that wrote it."""
HELPER_SEPARATOR = "_"
"""A tenant's helper roles are named `<name>_<purpose>`. No tenant's own name contains the separator, so a helper
always belongs to exactly one tenant."""


def check_tenant(tenant: Tenant) -> None:
    """Raises `ValueError` unless name, password and marker are safe to write into a statement."""
    check_name(tenant.name)
    for what, text in (("password", tenant.password), ("marker", tenant.marker)):
        if not text.isascii() or not text.isprintable() or "\\" in text:
            raise ValueError(f"a tenant's {what} is printable ASCII without a backslash")


def written_marker(tenant: Tenant, installation: str) -> str:
    """A tenant's marker as it is written on the host, with the installation, which may be empty."""
    return f"{tenant.marker}{INSTALLATION_SEPARATOR}{installation}" if installation else tenant.marker


def read_marker(written: str) -> tuple[str, str]:
    """Splits it into the marker and the installation that wrote it, which may be empty."""
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
