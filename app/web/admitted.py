"""When a request was let in. What it waits for afterwards, such as its turn, may last longer than its caller's
rights."""

from typing import Any

from litestar import Request

from app.auth import standing
from app.auth.principal import Principal

ADMITTED = "admitted"
"""The key of that moment in a request's state, by the clock of `monotonic`."""


async def expect_still(request: Request[Principal, Any, Any]) -> None:
    """Checks that the caller would still be let in, with no smaller role, where the request was let in long ago. Call
    it after a wait, before anything is done. Raises what `standing.expect` does."""
    await standing.expect_in_all_teams_after(request.scope["state"][ADMITTED], request.user)
