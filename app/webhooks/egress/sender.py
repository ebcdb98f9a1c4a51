"""One request to a receiver, and what came back of it: bounded in time and in bytes, through the guard."""

import asyncio
import os
import ssl
from datetime import UTC
from email.utils import parsedate_to_datetime
from importlib.metadata import version
from time import monotonic

import httpcore
import msgspec

from app.core.clock import utc_now
from app.core.settings import Settings
from app.webhooks.egress.addresses import AddressRule
from app.webhooks.egress.connections import ReceiverConnections
from app.webhooks.egress.guard import AddressRefused, Guard, on_behalf_of
from app.webhooks.egress.lookups import Resolve, resolve_by_system
from app.webhooks.egress.streams import CONTENT_BYTES, AnswerTooLong
from app.webhooks.egress.targets import RequestTarget, UnusableURL, parse_target

CONNECT_SECONDS = 5.0
_USER_AGENT = f"Headwater-Webhooks/{version('headwater')}"
_KEPT_BYTES = 2 * 1024
_BODY_SECONDS = 2.0
"""How long the answer's body may take; the status alone decides."""
_MOST_WAIT = 86_400.0
_MAY_DEFER = (429, 503)


class AttemptResult(msgspec.Struct, frozen=True, kw_only=True):
    """What an attempt brought. `error` is None when it was delivered."""

    code: int | None = None
    error: str | None = None
    body: str | None = None
    """The first bytes of the answer."""
    duration: float = 0
    """Seconds."""
    retry_after: float | None = None
    """Seconds after which the receiver asked to be sent the request again."""

    @property
    def delivered(self) -> bool:
        return self.error is None


class Sender:
    """Has connections of its own: no proxies from the environment, no redirects, no cookies."""

    def __init__(self, settings: Settings, *, resolve: Resolve = resolve_by_system) -> None:
        """Raises `ValueError` for settings that can't be used."""
        self._ca_file = settings.webhook_ca_file
        try:
            self._trust_ours(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
        except OSError as fault:
            raise ValueError(f"HEADWATER_WEBHOOK_CA_FILE: {self._ca_file}: {fault}") from None
        self.guard = Guard(AddressRule(settings.webhook_allow_cidrs), resolve)
        self._timeout = settings.webhook_timeout_seconds
        self._connections = ReceiverConnections(self._new_context, self.guard)

    async def close(self) -> None:
        await self._connections.close()

    async def send(self, url: str, headers: dict[str, str], body: bytes, *, party: str = "") -> AttemptResult:
        """Makes one POST. Whatever goes wrong is in the result. `party` is charged with looking up the name."""
        started = monotonic()
        seen = _Seen()
        error: str | None = None
        try:
            with on_behalf_of(party):
                async with asyncio.timeout(self._timeout):
                    await self._exchange(parse_target(url), headers, body, seen)
        except (UnusableURL, AddressRefused) as fault:
            error = str(fault)
        except Exception as fault:
            # Whatever a receiver makes go wrong, in TLS or below, is a failed attempt, and none of our own failures.
            error = self._words(fault)
        if seen.code is not None:
            error = _judgement(seen.code)
        return AttemptResult(
            code=seen.code,
            error=error,
            body=bytes(seen.body[:_KEPT_BYTES]).decode(errors="replace").replace("\x00", "\ufffd")
            if seen.code is not None
            else None,
            duration=monotonic() - started,
            retry_after=seen.retry_after if seen.code in _MAY_DEFER else None,
        )

    def _new_context(self) -> ssl.SSLContext:
        """Reads the certificates of all authorities, which takes 30 ms: a process that sends nothing does without."""
        context = ssl.create_default_context()
        self._trust_ours(context)
        return context

    def _trust_ours(self, context: ssl.SSLContext) -> None:
        """Raises `OSError`."""
        if self._ca_file is not None:
            context.load_verify_locations(self._ca_file)

    async def _exchange(self, target: RequestTarget, headers: dict[str, str], body: bytes, seen: "_Seen") -> None:
        limits = dict.fromkeys(("read", "write", "pool"), self._timeout)
        limits["connect"] = min(CONNECT_SECONDS, self._timeout)
        url = httpcore.URL(scheme=b"https", host=target.host, port=target.port, target=target.path)
        async with (
            self._connections.of(target.host, target.port) as pool,
            pool.stream(
                "POST", url, headers=_head(target, headers, body), content=body, extensions={"timeout": limits}
            ) as response,
        ):
            seen.code = response.status
            seen.retry_after = _retry_after(response.headers)
            async with asyncio.timeout(_BODY_SECONDS):
                async for chunk in response.aiter_stream():
                    seen.body += chunk
                    if len(seen.body) >= CONTENT_BYTES:
                        break

    def _words(self, fault: Exception) -> str:
        if isinstance(fault, httpcore.ConnectTimeout):
            return f"No connection within {min(CONNECT_SECONDS, self._timeout):g} s."
        if isinstance(fault, TimeoutError | httpcore.TimeoutException):
            return f"No answer within {self._timeout:g} s."
        if isinstance(fault, AnswerTooLong):
            return str(fault)
        if isinstance(fault, httpcore.ConnectError):
            return f"No connection: {_reason(fault)}."
        return f"The connection was lost before an answer: {_reason(fault)}."


class _Seen:
    """What has arrived of an answer so far."""

    def __init__(self) -> None:
        self.code: int | None = None
        self.retry_after: float | None = None
        self.body = bytearray()


def _head(target: RequestTarget, headers: dict[str, str], body: bytes) -> list[tuple[bytes, bytes]]:
    ours = {
        "Host": target.authority,
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        "User-Agent": _USER_AGENT,
        "Accept": "*/*",
        "Accept-Encoding": "identity",
    }
    return [(name.encode(), value.encode()) for name, value in {**ours, **headers}.items()]


def _judgement(code: int) -> str | None:
    if 200 <= code < 300:
        return None
    suffix = "; redirects are not followed" if 300 <= code < 400 else ""
    return f"The receiver answered {code}{suffix}."


def _reason(fault: Exception) -> str:
    """The innermost words that there are: of a refused certificate, or of the operating system."""
    words = str(fault)
    cause: BaseException | None = fault
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            # Which of the two it has depends on where in OpenSSL it came from.
            words = getattr(cause, "verify_message", "") or getattr(cause, "reason", None) or words
            words = words.replace("_", " ") if words.isupper() else words
        elif isinstance(cause, OSError):
            number = cause.errno or 0
            # One above 0 is the system's own, whose words name no address.
            words = (os.strerror(number) if number > 0 else cause.strerror) or words
        cause = cause.__cause__ or cause.__context__
    return (words or type(fault).__name__).rstrip(".")[:500]


def _retry_after(headers: list[tuple[bytes, bytes]]) -> float | None:
    """Seconds, from either form of the header; None for what is neither."""
    text = next((value.decode("latin-1").strip() for name, value in headers if name.lower() == b"retry-after"), "")
    if text.isdigit():
        return min(float(text[:9]), _MOST_WAIT)
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return min(max((moment - utc_now()).total_seconds(), 0), _MOST_WAIT)
