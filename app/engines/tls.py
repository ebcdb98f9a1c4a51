"""How strictly a host's certificate is checked: one policy for all connections to it."""

import re
import ssl
from enum import Enum
from functools import cached_property

import msgspec

_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----")


class TlsMode(Enum):
    """`prefer` is for hosts that were registered before there was a choice: encrypted if the server offers it. It
    can't be chosen."""

    DISABLE = "disable"
    PREFER = "prefer"
    REQUIRE = "require"
    VERIFY_FULL = "verify-full"


class TlsPolicy(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """`ca` is a PEM of the authorities that may have signed the server's certificate.

    As in libpq (PostgreSQL's documentation, section 34.19.1): `require` checks the certificate's authority if a CA is
    given, but not the host's name; `verify-full` checks both, against the CA or else against what this machine trusts.
    There is no fallback to less than the policy requires.
    """

    mode: TlsMode = TlsMode.REQUIRE
    ca: str | None = None

    @property
    def verified(self) -> bool:
        """Whether a connection authenticates the server. Without that no clear password may be sent over it."""
        return self.mode is TlsMode.VERIFY_FULL or (self.mode is TlsMode.REQUIRE and self.ca is not None)

    @cached_property
    def context(self) -> ssl.SSLContext | None:
        """The TLS context; None for `disable`. Cached, because creating it takes longer than a login. Raises
        `ValueError` for a CA that is not a PEM."""
        if self.mode is TlsMode.DISABLE:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.check_hostname = self.mode is TlsMode.VERIFY_FULL
        if not self.verified:
            context.verify_mode = ssl.CERT_NONE
        elif self.ca is None:
            context.load_default_certs()
        else:
            _load(context, self.ca)
        return context


def _load(context: ssl.SSLContext, ca: str) -> None:
    try:
        context.load_verify_locations(cadata=ca)
    except (ssl.SSLError, ValueError):
        raise ValueError("the CA is not a PEM of certificates") from None
    if not context.cert_store_stats()["x509"]:
        raise ValueError("the CA holds no certificate")


def certificates(text: str) -> str:
    """The certificates in a PEM, without the text around them: names and comments (RFC 7468, section 2), or the NUL
    byte after MySQL's self-made authority. Empty when there is none."""
    return "".join(f"{found}\n" for found in _CERTIFICATE.findall(text))


PLAIN = TlsPolicy(mode=TlsMode.DISABLE)


def tls_failure(error: BaseException) -> str | None:
    """The TLS problem, for the operator; None for another kind of error."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate isn't accepted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed: {error.reason or 'handshake'}"
    return None
