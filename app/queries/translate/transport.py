"""How the language model's server is spoken to: it may be anyone's, so what it sends is bounded as it arrives.

No redirects: they would take the key and the question elsewhere. No compression: a kilobyte may become a gigabyte. No
cookies: they would be stored and sent for as long as the process lives.
"""

from collections.abc import AsyncIterator
from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpx2
from openai import DefaultAsyncHttpxClient, OpenAIError

MAX_OCTETS = 1024 * 1024
"""The limit of a response. The longest SQL that is judged takes a tenth of it, escaped."""
_REDIRECTS = range(300, 400)
_ERRORS = range(400, 600)


class ResponseRefused(OpenAIError):
    """The response is not taken in. The message says why, for an operator."""


def http_client() -> httpx2.AsyncClient:
    """The HTTP client for the package, which closes it."""
    return DefaultAsyncHttpxClient(
        follow_redirects=False,
        headers={"Accept-Encoding": "identity"},
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        event_hooks={"response": [_bound]},
    )


async def _bound(response: httpx2.Response) -> None:
    """Bounds a response, of which only the head has come. Raises `ResponseRefused`."""
    if response.status_code in _REDIRECTS:
        raise ResponseRefused("is redirected elsewhere: set OPENAI_BASE_URL to where it leads")
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    if response.status_code in _ERRORS:
        # Its status says enough.
        response.headers.pop("content-encoding", None)
        response.stream = _Bounded(response.stream, 0)
        return
    if response.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise ResponseRefused("answers compressed, which it was asked not to")
    response.stream = _Bounded(response.stream, MAX_OCTETS)


class _Bounded(httpx2.AsyncByteStream):
    """A response's octets, as they come. Raises `ResponseRefused` beyond `most`; with 0 nothing is read at all."""

    def __init__(self, stream: httpx2.AsyncByteStream, most: int) -> None:
        self._stream = stream
        self._most = most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        received = 0
        if not self._most:
            return
        async for part in self._stream:
            received += len(part)
            if received > self._most:
                raise ResponseRefused(f"answered with more than {self._most} octets")
            yield part

    async def aclose(self) -> None:
        await self._stream.aclose()
