"""Which person of ours somebody at the provider is.

Only people who exist already come in, and those who were invited by their address. At first they are known by their
email, where the provider has verified it; from then on by their subject there, whatever becomes of the email.
"""

from app.accounts.sessions.oidc_provider import Identity
from app.audit.drafts import note
from app.auth.invitations import find_by_token
from app.auth.users import find_user, insert_invited, lock_person
from app.core.errors import SignInRefused
from app.store.session import execute, fetch_exists, fetch_value

_LONGEST_NAME = 255
_UNKNOWN = "Nobody here has this account. An operator makes users: headwater users create."


async def person_of(identity: Identity, invitation: str | None = None) -> int:
    """The user with this identity. `invitation` is the token with which they came. Call it in a transaction. Raises
    `SignInRefused`."""
    known = await _known(identity)
    if known is not None:
        return known
    user_id = None if identity.verified_email is None else await find_user(identity.verified_email)
    if user_id is None and invitation is not None:
        user_id = await _invited(identity, invitation)
    if user_id is None:
        raise SignInRefused(_UNKNOWN)
    await lock_person(user_id)
    if await _known(identity) == user_id:
        # They came twice at once.
        return user_id
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


async def _known(identity: Identity) -> int | None:
    return await fetch_value(
        int,
        "SELECT user_id FROM oidc_subjects WHERE issuer = $1 AND subject = $2",
        identity.issuer,
        identity.subject,
    )


async def _invited(identity: Identity, token: str) -> int | None:
    """Makes the person whom an open invitation is for, in no team yet: they accept it themselves. None where it is for
    nobody in particular: its link would make any number of people."""
    record = await find_by_token(token)
    email = identity.verified_email
    if record is None or not record.open or record.email is None or email is None:
        return None
    if not record.is_for(email):
        raise SignInRefused("The invitation is for another address than the one that the provider has verified.")
    made = await insert_invited(email, _name(identity.name, email))
    if made is not None:
        # For the team whose invitation it is: it sees who came by it.
        note(changes={"user_created": (None, made)}, team_id=record.team_id)
    return made


def _name(name: str | None, email: str) -> str:
    """What the provider calls them, as far as it is a name here."""
    given = " ".join("".join(one if one.isprintable() else " " for one in name or "").split())
    return given[:_LONGEST_NAME].strip() or email.partition("@")[0][:_LONGEST_NAME]
