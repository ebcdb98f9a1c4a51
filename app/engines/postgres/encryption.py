"""Connecting with TLS where the server has it, as libpq's `prefer` does, without asking anew each time.

For every connection the driver makes a TLS context and asks the server, which is a third of what connecting costs us.
"""

import os
import ssl
import time
from typing import Any, Literal

import asyncpg

_MODE = "PGSSLMODE"
"""libpq's setting, which the driver obeys. Whoever sets it gets just that."""
_UNENCRYPTED_SECONDS = 60.0
"""How long a server counts as one without TLS, so that it is used soon after it was switched on."""
_REFUSED = "28000"
"""What pg_hba.conf has no line for, encrypted or not encrypted; a role that may not log in too."""


class Encryption:
    """What the last connection to one server found."""

    def __init__(self) -> None:
        self._context: ssl.SSLContext | None = None
        self._unencrypted_until = 0.0

    async def connect(self, **options: Any) -> Any:
        """`asyncpg.connect` with these options."""
        known = self._known()
        if known is not None:
            try:
                return await asyncpg.connect(ssl=known, **options)
            except (asyncpg.InvalidAuthorizationSpecificationError, OSError) as error:
                if not _is_about_encryption(error):
                    raise
        connection = await asyncpg.connect(**options)
        self._remember(connection)
        return connection

    def _known(self) -> ssl.SSLContext | Literal[False] | None:
        if self._context is None and time.monotonic() < self._unencrypted_until:
            return False
        return self._context

    def _remember(self, connection: Any) -> None:
        if os.environ.get(_MODE):
            return
        if connection._transport.get_extra_info("ssl_object") is None:
            self._context, self._unencrypted_until = None, time.monotonic() + _UNENCRYPTED_SECONDS
        else:
            # With what the driver read from the environment: a client's certificate, versions.
            self._context = connection._params.ssl


def _is_about_encryption(error: Exception) -> bool:
    """The driver says that the server refuses TLS with a plain `ConnectionError`."""
    if isinstance(error, asyncpg.PostgresError):
        return bool(error.sqlstate == _REFUSED)
    return isinstance(error, ssl.SSLError) or type(error) is ConnectionError
