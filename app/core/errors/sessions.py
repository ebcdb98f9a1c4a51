"""Errors of people who sign in."""

from types import MappingProxyType

from app.core.errors.base import AppError


class SessionEnded(AppError):
    """The session of the cookie has ended, or never was. Sign in again."""

    code, status = "session_ended", 401

    def __init__(self) -> None:
        super().__init__("This session has ended. Sign in again.", headers={"WWW-Authenticate": "Bearer"})


class SessionRequired(AppError):
    """The operation is about people who are signed in, and the request came with an API key."""

    code, status = "session_required", 403

    def __init__(self) -> None:
        super().__init__("This is for people who are signed in to the console, not for API keys.")


class CrossOriginRefused(AppError):
    """The request came with a cookie, or signs somebody in, and not from a page of this origin. Browsers say where it
    came from over TLS and on localhost only."""

    code, status = "cross_origin_refused", 403


class PasskeyLimitReached(AppError):
    """The person has as many passkeys as there may be. Removing one makes room."""

    code, status = "passkey_limit_reached", 422
    example_details = MappingProxyType({"limit": 20})

    def __init__(self, limit: int) -> None:
        super().__init__(f"A person can have {limit} passkeys.", details={"limit": limit})


class SignInRefused(AppError):
    """Nobody is signed in by this: it was used, has expired, is somebody else's, or never was."""

    code, status = "sign_in_refused", 403
