"""The shape of signing in through a provider, on the wire."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

_Returned = Annotated[str, Meta(min_length=1, max_length=4000)]


class SignInMethods(Struct, kw_only=True):
    object: Literal["sign_in_methods"] = "sign_in_methods"
    link: bool = True
    passkeys: bool
    """Whether the page's host has a name: passkeys belong to names."""
    provider: str | None
    """The host of the OpenID Connect provider, where there is one."""


class SignInRedirect(Struct, kw_only=True):
    object: Literal["sign_in_redirect"] = "sign_in_redirect"
    url: str
    """The provider's page."""


class ReturnedCode(Struct, kw_only=True, forbid_unknown_fields=True):
    """What the provider added to the address of our page."""

    code: _Returned
    state: _Returned
    iss: _Returned | None = None
    """RFC 9207."""
