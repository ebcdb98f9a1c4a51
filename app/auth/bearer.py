"""The Authorization header. RFC 6750, section 2.1."""

from app.auth.keys import PREFIX
from app.core.errors import InvalidApiKey, Unauthorized


def bearer_key(authorization: str | None) -> str:
    """The API key in the header. Raises `Unauthorized` for a missing or malformed header, `InvalidApiKey` for a
    token that can't be a key of ours."""
    if authorization is None:
        raise Unauthorized("The Authorization header is missing. Send 'Authorization: Bearer pk_live_…'.")
    scheme, _, token = authorization.strip().partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token or " " in token:
        raise Unauthorized("The Authorization header is malformed. Send 'Authorization: Bearer pk_live_…'.")
    if not token.startswith(PREFIX):
        raise InvalidApiKey("This is not an API key of ours.")
    return token
