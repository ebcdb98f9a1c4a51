"""Which person of ours somebody at the provider is.

Only people who exist already come in. At first they are known by their email, where the provider has verified it; from
then on by their subject there, whatever becomes of the email.
"""

from app.auth.users import find_user
from app.core.errors import SignInRefused
from app.sessions.oidc_provider import Identity
from app.store.session import execute, fetch_exists, fetch_value

_UNKNOWN = "Nobody here has this account. An operator makes users: headwater users create."


async def person_of(identity: Identity) -> int:
    """Call it in a transaction. Raises `SignInRefused`."""
    known = await fetch_value(
        int,
        "SELECT user_id FROM oidc_subjects WHERE issuer = $1 AND subject = $2",
        identity.issuer,
        identity.subject,
    )
    if known is not None:
        return known
    user_id = None if identity.verified_email is None else await find_user(identity.verified_email)
    if user_id is None:
        raise SignInRefused(_UNKNOWN)
    if await fetch_exists("SELECT 1 FROM oidc_subjects WHERE issuer = $1 AND user_id = $2", identity.issuer, user_id):
        # The address has been given to somebody else since.
        raise SignInRefused("This person has another account at the provider.")
    await execute(
        "INSERT INTO oidc_subjects (user_id, issuer, subject) VALUES ($1, $2, $3)",
        user_id,
        identity.issuer,
        identity.subject,
    )
    return user_id
