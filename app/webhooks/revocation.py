"""The end of an endpoint: nothing more is delivered to it, what was still to be sent included."""

from app.store.session import execute
from app.webhooks import waiting
from app.webhooks.attempts import REVOKED
from app.webhooks.records import EndpointRecord


async def revoke(endpoint: EndpointRecord) -> None:
    """Ends it and what is pending for it, in the caller's transaction, with the row locked."""
    await execute("UPDATE webhook_endpoints SET revoked_at = now(), next_attempt_at = NULL WHERE id = $1", endpoint.id)
    await waiting.end_all(endpoint.id, REVOKED)
