"""Passkeys: what an authenticator is asked, and what is made of its answer. WebAuthn level 3, section 7.

An authenticator finds the person's passkey by the host, so nobody types who they are; it checks who uses it, by a PIN
or a fingerprint, and signs a challenge of ours, which counts once.
"""

import hashlib
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from cryptography.exceptions import UnsupportedAlgorithm
from webauthn import (
    generate_authentication_options,
    generate_registration_options,
    verify_authentication_response,
    verify_registration_response,
)
from webauthn.helpers import base64url_to_bytes, bytes_to_base64url, options_to_json_dict, parse_client_data_json
from webauthn.helpers.exceptions import WebAuthnException
from webauthn.helpers.structs import (
    AuthenticatorSelectionCriteria,
    PublicKeyCredentialDescriptor,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

from app.accounts.sessions import passkey_records as records
from app.accounts.sessions.passkey_records import CHALLENGE_SECONDS, PasskeyRecord
from app.accounts.sessions.passkey_schemas import AssertedCredential, NewCredential
from app.auth import standing
from app.auth.principal import Principal
from app.auth.users import lock_person
from app.core.errors import InvalidField, PasskeyLimitReached, SignInRefused
from app.store.installation import read_installation
from app.web.site import Origin

MOST = 20
"""The most passkeys of one person."""
_NAME = "Headwater"
_REFUSED = "This passkey is not known here, or its answer is not to what was asked. Try again."
_LONGEST_ID = 1023
"""Bytes of a credential's id: WebAuthn level 3, section 7.1."""
_FAULTS = (
    WebAuthnException,
    UnsupportedAlgorithm,
    ValueError,
    TypeError,
    AttributeError,
    LookupError,
    OverflowError,
    RecursionError,
)
"""What is raised for bytes from outside that are not what they should be."""


async def ask_for_new(caller: Principal, origin: Origin) -> dict[str, Any]:
    """Options for `navigator.credentials.create()`. Raises `InvalidField` where the host is no name."""
    known = await records.list_passkeys(caller.user_id, after=None, limit=MOST)
    options = generate_registration_options(
        rp_id=_host(origin),
        rp_name=_NAME,
        user_id=await _handle(caller.user_id),
        user_name=caller.user_email,
        user_display_name=caller.user_name,
        timeout=1000 * CHALLENGE_SECONDS,
        authenticator_selection=AuthenticatorSelectionCriteria(
            resident_key=ResidentKeyRequirement.REQUIRED, user_verification=UserVerificationRequirement.REQUIRED
        ),
        exclude_credentials=[PublicKeyCredentialDescriptor(id=one.credential_id) for one in known],
    )
    await records.keep_challenge(bytes_to_base64url(options.challenge), caller.user_id)
    return options_to_json_dict(options)


async def add(caller: Principal, origin: Origin, name: str, credential: NewCredential) -> UUID:
    """Adds a passkey. Call it in a transaction. Raises `SignInRefused` for an answer to something else,
    `PasskeyLimitReached`, `InvalidField`, and `SessionEnded`: a person who signs out everywhere finds no passkey
    afterwards that wasn't there before."""
    await lock_person(caller.user_id)
    await standing.expect(caller, None)
    if await records.count_passkeys(caller.user_id) >= MOST:
        raise PasskeyLimitReached(MOST)
    challenge = await challenge_of(credential.response.clientDataJSON, caller.user_id)
    host = _host(origin)
    try:
        made = verify_registration_response(
            credential=_plain(credential),
            expected_challenge=challenge,
            expected_rp_id=host,
            expected_origin=str(origin),
            require_user_verification=True,
        )
    except Exception:
        # It only computes; of certificates that are not what they should be, it raises what its libraries do.
        raise SignInRefused(_REFUSED) from None
    if len(made.credential_id) > _LONGEST_ID:
        raise SignInRefused(_REFUSED)
    uuid = await records.insert_passkey(
        caller.user_id,
        rp_id=host,
        credential_id=made.credential_id,
        public_key=made.credential_public_key,
        sign_count=made.sign_count,
        name=name,
        transports=credential.response.transports,
        synced=made.credential_backed_up,
    )
    if uuid is None:
        raise SignInRefused("This passkey is there already.")
    return uuid


async def ask_for_any(origin: Origin) -> dict[str, Any]:
    """Options for `navigator.credentials.get()`: any passkey of this host. Raises `InvalidField`."""
    options = generate_authentication_options(
        rp_id=_host(origin),
        timeout=1000 * CHALLENGE_SECONDS,
        user_verification=UserVerificationRequirement.REQUIRED,
    )
    await records.keep_challenge(bytes_to_base64url(options.challenge), None)
    return options_to_json_dict(options)


async def recognise(origin: Origin, challenge: bytes, credential: AssertedCredential) -> PasskeyRecord:
    """The passkey that has signed this challenge. Call it in a transaction. Raises `SignInRefused`."""
    try:
        record = await records.find_credential(base64url_to_bytes(credential.id))
        if record is None or record.rp_id != _host(origin):
            raise SignInRefused(_REFUSED)
        handle = credential.response.userHandle
        if handle is None or base64url_to_bytes(handle) != await _handle(record.user_id):
            raise SignInRefused(_REFUSED)
        used = verify_authentication_response(
            credential=_plain(credential),
            expected_challenge=challenge,
            expected_rp_id=record.rp_id,
            expected_origin=str(origin),
            credential_public_key=record.public_key,
            credential_current_sign_count=record.sign_count,
            require_user_verification=True,
        )
    except _FAULTS:
        raise SignInRefused(_REFUSED) from None
    await records.note_used(record.id, sign_count=used.new_sign_count, synced=used.credential_backed_up)
    return record


async def challenge_of(client_data: str, user_id: int | None = None) -> bytes:
    """The challenge that was signed, if it is ours and for this person, or for a sign-in (None): it is used up. Raises
    `SignInRefused`."""
    try:
        challenge = parse_client_data_json(base64url_to_bytes(client_data)).challenge
    except _FAULTS:
        raise SignInRefused(_REFUSED) from None
    if not await records.use_challenge(bytes_to_base64url(challenge), user_id):
        raise SignInRefused("This took too long, or was used before. Try again.")
    return challenge


async def _handle(user_id: int) -> bytes:
    """What authenticators know a person by. It differs between installations: another one on the same host has people
    with the same ids, and a passkey for one installation would replace the other's."""
    installation = (await read_installation()).id
    return hashlib.sha256(f"{installation}/{user_id}".encode()).digest()


def _host(origin: Origin) -> str:
    if not origin.is_name:
        raise InvalidField("host", "Passkeys belong to a host's name: open the console by one, such as localhost.")
    return origin.domain


def _plain(credential: NewCredential | AssertedCredential) -> dict[str, Any]:
    response = {name: value for name, value in _fields(credential.response) if value is not None}
    return {"id": credential.id, "rawId": credential.rawId, "type": "public-key", "response": response}


def _fields(response: Any) -> Sequence[tuple[str, Any]]:
    return [(name, getattr(response, name)) for name in response.__struct_fields__]
