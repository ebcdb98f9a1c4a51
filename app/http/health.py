"""Whether this process lives, and whether it can serve. For orchestrators; no key is needed."""

from litestar import MediaType, Response, get

from app.store.session import fetch


@get("/health/live")
async def live() -> dict[str, str]:
    return {"status": "live"}


@get("/health/ready")
async def ready() -> Response[dict[str, str]]:
    """503 while our own database can't be reached. Temporal is not asked: without it the API still serves."""
    try:
        await fetch("SELECT 1")
    except Exception:
        return Response({"status": "unavailable"}, status_code=503, media_type=MediaType.JSON)
    return Response({"status": "ready"}, media_type=MediaType.JSON)
