"""The API's description, and a page for reading it that loads nothing from other sites."""

from importlib.resources import files
from pathlib import Path

from litestar import MediaType, Response, Router, get
from litestar.exceptions import NotFoundException
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath
from litestar.response import File

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
_CACHED = {"Cache-Control": "public, max-age=86400"}


def documentation(handlers: list[tuple[str, HTTPRouteHandler]]) -> Router:
    """Serves `/openapi.json` and `/docs` for these handlers, without authentication."""
    description = formatted(document(handlers))

    @get("/openapi.json", media_type=MediaType.JSON)
    async def openapi() -> Response[bytes]:
        return Response(description, media_type=MediaType.JSON)

    return Router("/", route_handlers=[openapi, page, script, asset])


@get("/docs", media_type=MediaType.HTML)
async def page() -> str:
    return _PAGE


@get("/docs/page.js", media_type="text/javascript")
async def script() -> str:
    return _SCRIPT


@get("/docs/{name:str}")
async def asset(name: FromPath[str]) -> File:
    if name not in _ASSETS:
        raise NotFoundException
    path = Path(str(files("swagger_ui"))) / "static" / name
    return File(path, media_type=_ASSETS[name], content_disposition_type="inline", headers=_CACHED)
