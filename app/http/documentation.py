"""The API's description, and a page to read it on that needs nothing from elsewhere."""

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
<script>
SwaggerUIBundle({url: "/openapi.json", dom_id: "#page", deepLinking: true, validatorUrl: null})
</script>
</body>
</html>
"""

_ASSETS = {
    "swagger-ui.css": "text/css",
    "swagger-ui-bundle.js": "text/javascript",
    "favicon-32x32.png": "image/png",
}
_CACHED = {"Cache-Control": "public, max-age=86400"}


def documentation(handlers: list[tuple[str, HTTPRouteHandler]]) -> Router:
    """`/openapi.json` and `/docs`, describing these handlers. Anybody may read them."""
    description = formatted(document(handlers))

    @get("/openapi.json", media_type=MediaType.JSON)
    async def openapi() -> Response[bytes]:
        return Response(description, media_type=MediaType.JSON)

    return Router("/", route_handlers=[openapi, page, asset])


@get("/docs", media_type=MediaType.HTML)
async def page() -> str:
    return _PAGE


@get("/docs/{name:str}")
async def asset(name: FromPath[str]) -> File:
    if name not in _ASSETS:
        raise NotFoundException
    path = Path(str(files("swagger_ui"))) / "static" / name
    return File(path, media_type=_ASSETS[name], content_disposition_type="inline", headers=_CACHED)
