"""The shape of passkeys on the wire. Names within a credential are WebAuthn's own."""

from typing import Annotated, Any, Literal
from uuid import UUID

from msgspec import Meta, Struct

from app.accounts.sessions.passkey_records import PasskeyRecord
from app.core.clock import Moment

PasskeyName = Annotated[str, Meta(min_length=1, max_length=100)]
_Base64 = Annotated[str, Meta(min_length=1, max_length=100_000, pattern="^[A-Za-z0-9_-]+={0,2}$")]
_Id = Annotated[str, Meta(min_length=1, max_length=1400, pattern="^[A-Za-z0-9_-]+={0,2}$")]
_Transport = Annotated[str, Meta(max_length=32)]


class PasskeyOptions(Struct, kw_only=True):
    object: Literal["passkey_options"] = "passkey_options"
    options: dict[str, Any]
    """For the browser's `PublicKeyCredential.parseCreationOptionsFromJSON` or `parseRequestOptionsFromJSON`."""


class AttestationResponse(Struct, kw_only=True):
    clientDataJSON: _Base64  # noqa: N815 - WebAuthn's name
    attestationObject: _Base64  # noqa: N815
    transports: Annotated[list[_Transport], Meta(max_length=10)] = []


class NewCredential(Struct, kw_only=True):
    """What `navigator.credentials.create()` gives, by its `toJSON()`."""

    id: _Id
    rawId: _Id  # noqa: N815
    type: Literal["public-key"]
    response: AttestationResponse


class AssertionResponse(Struct, kw_only=True):
    clientDataJSON: _Base64  # noqa: N815
    authenticatorData: _Base64  # noqa: N815
    signature: _Base64
    userHandle: _Id | None = None  # noqa: N815


class AssertedCredential(Struct, kw_only=True):
    """What `navigator.credentials.get()` gives, by its `toJSON()`."""

    id: _Id
    rawId: _Id  # noqa: N815
    type: Literal["public-key"]
    response: AssertionResponse


class AddPasskey(Struct, kw_only=True, forbid_unknown_fields=True):
    name: PasskeyName
    credential: NewCredential


class RenamePasskey(Struct, kw_only=True, forbid_unknown_fields=True):
    name: PasskeyName


class UsePasskey(Struct, kw_only=True, forbid_unknown_fields=True):
    credential: AssertedCredential


class PasskeyView(Struct, kw_only=True):
    """A passkey of the person."""

    object: Literal["passkey"] = "passkey"
    uuid: UUID
    name: str
    host: str
    """It works there alone."""
    synced: bool
    """Whether it is on more than one device."""
    created_at: Moment
    last_used_at: Moment | None


class RemovedPasskey(Struct, kw_only=True):
    object: Literal["passkey"] = "passkey"
    uuid: UUID
    removed: bool = True


def passkey_view(record: PasskeyRecord) -> PasskeyView:
    return PasskeyView(
        uuid=record.uuid,
        name=record.name,
        host=record.rp_id,
        synced=record.synced,
        created_at=record.created_at,
        last_used_at=record.last_used_at,
    )
