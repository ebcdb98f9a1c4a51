"""The operator's own age keys, as settings name them. Both functions raise `InvalidSettings`."""

import pyrage
from pyrage.x25519 import Identity, Recipient

from app.core.settings import InvalidSettings, Settings


def operator_recipient(settings: Settings) -> Recipient | None:
    if settings.backup_age_recipient is None:
        return None
    try:
        return Recipient.from_str(settings.backup_age_recipient)
    except pyrage.RecipientError:
        raise InvalidSettings("HEADWATER_BACKUP_AGE_RECIPIENT: expected an age recipient, age1…") from None


def operator_identities(settings: Settings) -> tuple[Identity, ...]:
    path = settings.backup_age_identity_file
    if path is None:
        return ()
    try:
        lines = [line.strip() for line in path.read_text().splitlines()]
        found = tuple(Identity.from_str(line) for line in lines if line and not line.startswith("#"))
    except (OSError, ValueError, pyrage.IdentityError):
        raise InvalidSettings(
            f"HEADWATER_BACKUP_AGE_IDENTITY_FILE: {path}: expected age identities, AGE-SECRET-KEY-1…, one a line"
        ) from None
    if not found:
        raise InvalidSettings(f"HEADWATER_BACKUP_AGE_IDENTITY_FILE: {path}: it has no identity")
    return found
