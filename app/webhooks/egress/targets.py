"""An endpoint's URL, taken apart once and strictly: what was checked is what is dialled, with no second reading."""

import re
from ipaddress import AddressValueError, IPv4Address, IPv6Address

import idna
import msgspec

MAX_LENGTH = 2048

_URL = re.compile(r"https://(?P<authority>[^/?#]*)(?P<path>/[^?#]*)?(?P<query>\?[^#]*)?", re.IGNORECASE | re.ASCII)
_AUTHORITY = re.compile(r"(?P<host>\[[^\]]*\]|[^:\[\]]*)(?::(?P<port>[0-9]{1,5}))?", re.ASCII)
_UNSAFE = re.compile(r"[^!-~]|[\"<>\\^`{|}]", re.ASCII)
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?", re.ASCII)
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)


class UnusableURL(ValueError):
    """Why a URL can't be an endpoint's, in a sentence."""


class RequestTarget(msgspec.Struct, frozen=True):
    """Where to send: the host as it is dialled, without the brackets of an IPv6 address, and the request's target."""

    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        """The `Host` header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == 443 else f"{host}:{self.port}"


def parse_target(url: str) -> RequestTarget:
    """Raises `UnusableURL`."""
    if len(url) > MAX_LENGTH:
        raise UnusableURL(f"A URL has at most {MAX_LENGTH} characters.")
    if not url.lower().startswith("https://"):
        raise UnusableURL("Expected a URL that begins with https://.")
    match = _URL.fullmatch(url)
    if match is None:
        raise UnusableURL("A URL of an endpoint has no fragment (#).")
    authority = match["authority"]
    if "@" in authority:
        raise UnusableURL("A URL of an endpoint has no user name and password in it.")
    parts = _AUTHORITY.fullmatch(authority)
    if parts is None:
        raise UnusableURL("The host or the port can't be read.")
    port = int(parts["port"] or 443)
    if not 1 <= port <= 65_535:
        raise UnusableURL("A port is a number from 1 to 65535.")
    path = (match["path"] or "/") + (match["query"] or "")
    if _UNSAFE.search(path):
        raise UnusableURL("Path and query have characters that must be percent-encoded.")
    return RequestTarget(_host(parts["host"]), port, path)


def _host(text: str) -> str:
    if text.startswith("["):
        return _ipv6(text[1:-1])
    if not text:
        raise UnusableURL("The host is missing.")
    name = _ascii(text).removesuffix(".")
    labels = name.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        return _ipv4(name)
    if len(name) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise UnusableURL("The host is neither a name nor an address.")
    return name


def _ascii(text: str) -> str:
    if text.isascii():
        return text.lower()
    try:
        name = idna.encode(text.lower()).decode()
    except idna.IDNAError:
        raise UnusableURL("The host is no valid international name.") from None
    if _NUMBER.fullmatch(name.removesuffix(".").rpartition(".")[2]):
        raise UnusableURL("An IPv4 address is written in ASCII.")
    return name


def _ipv4(text: str) -> str:
    """Four decimal numbers. Other spellings, such as 0x7f.1 or 2130706433, mean other addresses to other readers."""
    try:
        return str(IPv4Address(text))
    except AddressValueError:
        raise UnusableURL("An IPv4 address is written as four decimal numbers, such as 192.0.2.1.") from None


def _ipv6(text: str) -> str:
    try:
        address = IPv6Address(text)
    except AddressValueError:
        raise UnusableURL("The host is no IPv6 address.") from None
    if address.scope_id is not None:
        raise UnusableURL("An IPv6 address of an endpoint has no zone.")
    return str(address)
