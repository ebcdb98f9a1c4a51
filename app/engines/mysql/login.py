"""Logging in to a MySQL or MariaDB server under the host's TLS policy.

The driver sends whatever a server requests, even the password itself: for `mysql_clear_password`, and in the full
exchange of `caching_sha2_password` and `sha256_password`, where it is encrypted at most for whoever sent a public key.
Here the password is sent only over a connection that has authenticated the server, or not at all.
"""

import ssl
from typing import Any

import aiomysql
from pymysql import _auth
from pymysql.constants import CLIENT

from app.engines.tls import TlsMode, TlsPolicy

_PROVING = ("mysql_native_password", "caching_sha2_password")
"""Plugins for which a proof of the password suffices, at least at first."""
_FAST = b"\x01\x03"
"""The server has the account's hash in memory, and the proof was right."""


class UnprovenServer(aiomysql.OperationalError):  # type: ignore[misc]  # the driver is untyped
    """The server requests more than the policy allows. The message is for the operator."""

    def __init__(self, reason: str) -> None:
        super().__init__(2061, reason)  # CR_AUTH_PLUGIN_ERR


class GuardedLogin(aiomysql.Connection):  # type: ignore[misc]  # the driver is untyped
    """The driver's connection under a TLS policy."""

    def __init__(self, policy: TlsPolicy, **options: Any) -> None:
        super().__init__(ssl=policy.context, **options)
        self._policy = policy
        self._ssl_context: ssl.SSLContext | None = policy.context
        self._server_auth_plugin: str = ""

    @property
    def _full_exchange(self) -> bool:
        return self._policy.verified or self._policy.mode is TlsMode.PREFER

    async def _get_server_information(self) -> None:
        await super()._get_server_information()
        if not self.server_capabilities & CLIENT.PLUGIN_AUTH:
            # The driver would use the proof of servers before 5.5, which reveals the password.
            raise UnprovenServer("it knows no authentication plugins: it is too old, or no such server")
        if self._ssl_context is not None and not self.server_capabilities & CLIENT.SSL:
            if self._policy.mode is not TlsMode.PREFER:
                raise UnprovenServer("it offers no TLS, which this host's mode asks for")
            self._ssl_context = None
            self.client_flag &= ~CLIENT.SSL
        if self._server_auth_plugin not in _PROVING and not self._policy.verified:
            # Only the first proposal: an account with another plugin is switched to it.
            self._server_auth_plugin = _PROVING[0]

    async def _process_auth(self, plugin_name: bytes, auth_packet: Any) -> Any:
        plugin = plugin_name.decode("latin1")
        if plugin not in _PROVING and not self._policy.verified:
            raise UnprovenServer(_needs_verified(plugin))
        return await super()._process_auth(plugin_name, auth_packet)

    async def caching_sha2_password_auth(self, pkt: Any) -> Any:
        if self._password and not self._full_exchange:
            if pkt.is_auth_switch_request():
                self.salt = pkt.read_all()
                self.write_packet(_auth.scramble_caching_sha2(self._password.encode("latin1"), self.salt))
                pkt = await self._read_packet()
            if pkt.is_extra_auth_data() and pkt.get_all_data()[: len(_FAST)] != _FAST:
                raise UnprovenServer(_needs_verified("caching_sha2_password"))
        return await super().caching_sha2_password_auth(pkt)

    async def sha256_password_auth(self, pkt: Any) -> Any:
        if not self._policy.verified:
            raise UnprovenServer(_needs_verified("sha256_password"))
        return await super().sha256_password_auth(pkt)


def _needs_verified(plugin: str) -> str:
    return (
        f"it asks for the password itself ({plugin[:64]!r}), over a connection that doesn't prove whose it is: "
        "verified TLS is needed, which is --tls verify-full, or --tls require with --ca"
    )
