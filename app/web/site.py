"""Where browsers reach us: our own origin (RFC 6454), the cookie of a session there, and whether a request comes from
a page of ours.

A browser sends a cookie to every port of a host, and takes a page of another port for the same site: SameSite doesn't
keep such a page from sending requests with our cookie. Its Origin differs, and so does its Sec-Fetch-Site.
"""

import re
from collections.abc import Sequence

import msgspec
from litestar.datastructures import Headers
from litestar.types import Scope

from app.auth.client_address import Network, parse_address
from app.core.errors import CrossOriginRefused, Unauthorized

_COOKIE = "headwater_session"
_HOST_COOKIE = f"__Host-{_COOKIE}"
"""Over TLS: no other host of the domain, and no page without TLS, can set a cookie of this name. RFC 6265bis, 4.1.3."""
_PROVIDER_COOKIE = "headwater_sign_in"
_HOST = re.compile(r"[a-z0-9.-]+(:[0-9]{1,5})?|\[[0-9a-f:]+\](:[0-9]{1,5})?")
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_OWN_READS = frozenset({"same-origin", "none"})
"""Sec-Fetch-Site of a page of ours, and of an address that a person has typed."""
PROTECTIVE_HEADERS = (
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"x-frame-options", b"DENY"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"vary", b"Cookie, Origin, Sec-Fetch-Site"),
)
"""The headers of every answer to a browser with a session: no page has the answer in a frame or as a resource."""


class Origin(msgspec.Struct, frozen=True):
    """A scheme and a host with its port, as browsers write them."""

    scheme: str
    host: str

    @property
    def secure(self) -> bool:
        return self.scheme == "https"

    @property
    def cookie(self) -> str:
        """The name of the session's cookie here."""
        return _HOST_COOKIE if self.secure else _COOKIE

    @property
    def provider_cookie(self) -> str:
        """The name of the cookie that a browser keeps while it is at the provider."""
        return f"__Host-{_PROVIDER_COOKIE}" if self.secure else _PROVIDER_COOKIE

    @property
    def is_name(self) -> bool:
        """Whether the host is a name, and no address."""
        return not self.domain.startswith("[") and not self.domain.replace(".", "").isdigit()

    @property
    def domain(self) -> str:
        """The host without its port."""
        return self.host.rpartition("]")[0] + "]" if self.host.startswith("[") else self.host.partition(":")[0]

    def __str__(self) -> str:
        return f"{self.scheme}://{self.host}"


class Site:
    """The site of one installation. `url` is its origin where it is set; otherwise each request says by which name it
    came."""

    def __init__(self, url: str | None, trusted_proxies: Sequence[Network]) -> None:
        self._origin = None if url is None else Origin(*url.split("://", 1))
        self._trusted = trusted_proxies

    def origin(self, scope: Scope, headers: Headers) -> Origin:
        """Our origin for this request. Raises `CrossOriginRefused` for a Host that names no host."""
        if self._origin is not None:
            return self._origin
        host = headers.get("Host", "").lower()
        if not _HOST.fullmatch(host):
            raise CrossOriginRefused("The Host header of this request names no host.")
        scheme = _scheme(scope, headers, self._trusted)
        return Origin(scheme, host.removesuffix(":443" if scheme == "https" else ":80"))


def _scheme(scope: Scope, headers: Headers, trusted: Sequence[Network]) -> str:
    """The scheme of the request. What a proxy says of the connection to it counts if we trust the proxy."""
    forwarded = headers.get("X-Forwarded-Proto", "").lower()
    client = scope["client"]
    if trusted and client and forwarded in ("http", "https"):
        address = parse_address(client[0])
        if any(address in network for network in trusted):
            return forwarded
    return "https" if scope["scheme"] == "https" else "http"


def session_token(headers: Headers, name: str) -> str | None:
    """The value of the session's cookie. Raises `Unauthorized` for several different ones: pages of other ports and
    other paths can add theirs."""
    cookies = headers.getall("Cookie", [])
    if not cookies:
        return None
    pairs = [pair.strip().partition("=") for header in cookies for pair in header.split(";")]
    values = {value for found, _, value in pairs if found == name and value}
    if len(values) > 1:
        raise Unauthorized("There are several session cookies. Delete this host's cookies and sign in again.")
    return values.pop() if values else None


def session_cookie(origin: Origin, token: str, seconds: int, *, name: str | None = None) -> str:
    """The value of `Set-Cookie` for the session's cookie, or for the one of the name that is given. An empty token and
    no seconds take the cookie away."""
    secure = "; Secure" if origin.secure else ""
    return f"{name or origin.cookie}={token}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"


def check_own_page(method: str, headers: Headers, origin: Origin) -> None:
    """Raises `CrossOriginRefused` for a request with a cookie that comes from elsewhere than a page of this origin. A
    request that may change something has to say where it comes from; one that reads may say nothing."""
    site = headers.get("Sec-Fetch-Site")
    if method in _SAFE:
        if site is not None and site not in _OWN_READS:
            raise CrossOriginRefused("This request comes from a page of another origin.")
        return
    check_own_change(headers, origin)


def check_own_change(headers: Headers, origin: Origin) -> None:
    """The same for what changes something."""
    sent, site = headers.getall("Origin", []), headers.getall("Sec-Fetch-Site", [])
    if sent == [str(origin)] and site == ["same-origin"]:
        return
    if not sent or not site:
        raise CrossOriginRefused(
            "This request doesn't say that it comes from a page of this origin: it takes Origin and Sec-Fetch-Site, "
            "which browsers send over TLS and on localhost."
        )
    raise CrossOriginRefused(f"This request comes from a page of another origin than {origin}.")
