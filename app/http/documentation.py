"""The API's description, and a page for reading it that loads nothing from other sites."""

from importlib.resources import files
from pathlib import Path

from litestar import MediaType, Response, Router, get
from litestar.exceptions import NotFoundException
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath
from litestar.response import File

from app.console.routes import SECURITY_HEADERS
from app.http.openapi import document, formatted

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Headwater API</title>
<link rel="stylesheet" href="/docs/swagger-ui.css">
<link rel="icon" href="/docs/favicon-32x32.png">
</head>
<body>
<div id="page"></div>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/page.js"></script>
</body>
</html>
"""

_SCRIPT = """
// "Try it out" sends each change with a key of its own, unless one is typed in: with the same key again, the second
// would be answered as a repetition of the first.
const HEADER = "Idempotency-Key"

function freshKey() {
  // Not crypto.randomUUID(), which only pages over TLS or from this machine have.
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  bytes[6] = (bytes[6] & 0x0f) | 0x40
  bytes[8] = (bytes[8] & 0x3f) | 0x80
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-")
}

function withKey(request) {
  if (request.method && request.method !== "GET" && !request.headers[HEADER]) {
    request.headers[HEADER] = freshKey()
  }
  return request
}

function mayBeLeftEmpty(spec) {
  for (const item of Object.values(spec.paths)) {
    for (const operation of Object.values(item)) {
      for (const parameter of operation.parameters.filter(({name}) => name === HEADER)) {
        parameter.required = false
        parameter.description += " Left empty, this page makes one for each request."
      }
    }
  }
  return spec
}

fetch("/openapi.json").then((answer) => answer.json()).then((spec) => {
  SwaggerUIBundle({
    spec: mayBeLeftEmpty(spec),
    dom_id: "#page",
    deepLinking: true,
    validatorUrl: null,
    requestInterceptor: withKey,
  })
})
"""

_ASSETS = {
    "swagger-ui.css": "text/css",
    "swagger-ui-bundle.js": "text/javascript",
    "favicon-32x32.png": "image/png",
}
_NO_SNIFFING = {"X-Content-Type-Options": "nosniff"}
_CACHED = {"Cache-Control": "public, max-age=86400", **_NO_SNIFFING}
_PAGE_HEADERS = SECURITY_HEADERS | {
    # A script here could do what the console does. Swagger UI makes markup from text: Trusted Types are not demanded.
    "Content-Security-Policy": "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self' 'unsafe-inline'",
            "img-src 'self' data:",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    )
}


def documentation(handlers: list[tuple[str, HTTPRouteHandler]]) -> Router:
    """Serves `/openapi.json` and `/docs` for these handlers, without authentication."""
    description = formatted(document(handlers))

    @get("/openapi.json", media_type=MediaType.JSON)
    async def openapi() -> Response[bytes]:
        return Response(description, media_type=MediaType.JSON)

    return Router("/", route_handlers=[openapi, page, script, asset])


@get("/docs", media_type=MediaType.HTML)
async def page() -> Response[str]:
    return Response(_PAGE, media_type=MediaType.HTML, headers=_PAGE_HEADERS)


@get("/docs/page.js", media_type="text/javascript")
async def script() -> Response[str]:
    return Response(_SCRIPT, media_type="text/javascript", headers=_NO_SNIFFING)


@get("/docs/{name:str}")
async def asset(name: FromPath[str]) -> File:
    if name not in _ASSETS:
        raise NotFoundException
    path = Path(str(files("swagger_ui"))) / "static" / name
    return File(path, media_type=_ASSETS[name], content_disposition_type="inline", headers=_CACHED)
