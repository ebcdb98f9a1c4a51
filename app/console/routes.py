"""Serving the console's pages. They are the same for everybody: who sees what is the API's to decide."""

from typing import Any

from litestar import Request, Response, get, head
from litestar.exceptions import NotFoundException

from app.console.assets import File, load_files

SECURITY_HEADERS = {
    # Nothing from other hosts, no script or style inside of a page, no text that becomes markup, nobody's frame.
    "Content-Security-Policy": "; ".join(
        (
            "default-src 'self'",
            "script-src 'self'",
            "style-src 'self'",
            "img-src 'self'",
            "connect-src 'self'",
            "font-src 'none'",
            "object-src 'none'",
            "base-uri 'none'",
            "form-action 'self'",
            "frame-ancestors 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    # A page's own requests carry Origin, which `no-referrer` would take from forms.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_FOR_EVER = "public, max-age=31536000, immutable"
_ASK_EACH_TIME = "no-cache"
_COOKIE = "headwater_session="
"""In the name of the session's cookie, with TLS and without."""
_VARY = "Accept-Encoding, Cookie, Sec-Fetch-Site"

Call = Request[Any, Any, Any]
_PATHS = ["/console", "/console/{path:path}"]


@get(_PATHS, include_in_schema=False)
async def console(request: Call) -> Response[bytes]:
    """A file of this version, or the page that starts the console: it finds out what its address means."""
    return _found(request)


@head(_PATHS, include_in_schema=False)
async def console_head(request: Call) -> Response[None]:
    """What a GET would answer, without its content (RFC 9110, section 9.3.2)."""
    found = _found(request)
    length = {} if found.status_code == 304 else {"Content-Length": str(len(found.content))}
    headers = {**found.headers, **length}
    return Response(None, status_code=found.status_code, media_type=found.media_type, headers=headers)


def _found(request: Call) -> Response[bytes]:
    files = load_files()
    first, _, rest = request.url.path.removeprefix("/console").strip("/").partition("/")
    if first == files.version:
        if rest not in files.by_path:
            raise NotFoundException
        return _answer(request, files.by_path[rest], _FOR_EVER)
    if rest and _names_a_file(rest):
        # Of another version: its page is to be loaded again, and must not take a page for a module.
        raise NotFoundException
    return _answer(request, files.visitors_index if _is_visitor(request) else files.index, _ASK_EACH_TIME)


def _is_visitor(request: Call) -> bool:
    """Whether this is surely nobody who is signed in: then the page need not ask the API, which would refuse. A link on
    another site leads here without our cookie, which is SameSite=Strict."""
    known = request.headers.get("Sec-Fetch-Site", "") in ("none", "same-origin")
    return known and _COOKIE not in request.headers.get("Cookie", "")


def _names_a_file(path: str) -> bool:
    return path.endswith((".js", ".css", ".svg", ".txt"))


def _answer(request: Call, file: File, caching: str) -> Response[bytes]:
    headers = {**SECURITY_HEADERS, "Cache-Control": caching, "ETag": file.etag, "Vary": _VARY}
    if file.etag in request.headers.get("If-None-Match", ""):
        return Response(b"", status_code=304, headers=headers)
    if "gzip" in request.headers.get("Accept-Encoding", ""):
        return Response(file.compressed, media_type=file.media_type, headers={**headers, "Content-Encoding": "gzip"})
    return Response(file.content, media_type=file.media_type, headers=headers)
