"""RFC 7636 for the provider of the tests, which itself checks no verifier."""

import base64
import hashlib
from collections.abc import Callable, Iterable
from io import BytesIO
from typing import Any
from urllib.parse import parse_qs, urlsplit

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
_REFUSAL = b'{"error": "invalid_grant"}'


class Pkce:
    """Around a provider: it gives no code without a challenge by S256, and no token without that challenge's verifier
    (sections 4.3 and 4.6)."""

    def __init__(self, provider: Application) -> None:
        self._provider = provider
        self._challenges: dict[str, str] = {}

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if environ["PATH_INFO"].endswith("/token"):
            body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            environ["wsgi.input"] = BytesIO(body)
            if not self._is_verified(_fields(body.decode())):
                start("400 Bad Request", [("Content-Type", "application/json"), ("Content-Length", str(len(_REFUSAL)))])
                return [_REFUSAL]
        asked = _fields(environ["QUERY_STRING"])

        def starting(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
            code = _fields(urlsplit(dict(headers).get("Location", "")).query).get("code")
            if code is not None:
                assert asked["code_challenge_method"] == "S256"
                self._challenges[code] = asked["code_challenge"]
            return start(status, headers, *rest)

        return self._provider(environ, starting)

    def _is_verified(self, given: dict[str, str]) -> bool:
        digest = hashlib.sha256(given.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        return self._challenges.get(given.get("code", "")) == challenge


def _fields(text: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(text).items()}
