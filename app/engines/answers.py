"""How much a server may send in answer to one statement: what it sends is the tenant's, and is held in memory."""

from app.engines.errors import EngineError

MAX_OCTETS = 256 * 1024 * 1024
"""In answer to one statement of ours on a host: lists of a host's tenants, or of one tenant's objects."""
TENANT_OCTETS = 64 * 1024 * 1024
"""The same where the tenant itself asks, for what it has written."""


class ResponseTooLarge(EngineError):
    """The connection was cut, for the answer had more octets than it may have. What the statement did is done."""

    def __init__(self, most: int) -> None:
        super().__init__(f"The answer is larger than {most} octets.")
