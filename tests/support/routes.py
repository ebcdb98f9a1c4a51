"""The API's routes and their description, made once for all tests of a process, which only read them."""

from functools import cache
from typing import Any

from litestar.handlers import HTTPRouteHandler

from app.http import routes


@cache
def api_handlers() -> list[tuple[str, HTTPRouteHandler]]:
    """Every handler under `/api/v1`, with its path."""
    return routes.api_handlers()


@cache
def describe() -> dict[str, Any]:
    """The API's description."""
    return routes.describe()
