"""SCRAM-SHA-256 verifiers as PostgreSQL stores them (RFC 5802, RFC 7677), so that no statement carries the clear
password into a log, `pg_stat_activity` or `pg_stat_statements`."""

import base64
import hashlib
import hmac
import secrets

ITERATIONS = 4096
"""PostgreSQL's default. More would slow each login and add nothing to a random password of 190 bits."""


def verifier(password: str, *, salt: bytes | None = None, iterations: int = ITERATIONS) -> str:
    """A verifier for the clause `PASSWORD '…'`. `password` is ASCII, which SASLprep doesn't change."""
    salt = salt or secrets.token_bytes(16)
    salted = hashlib.pbkdf2_hmac("sha256", password.encode("ascii"), salt, iterations)
    stored_key = hashlib.sha256(_hmac(salted, b"Client Key")).digest()
    server_key = _hmac(salted, b"Server Key")
    return f"SCRAM-SHA-256${iterations}:{_b64(salt)}${_b64(stored_key)}:{_b64(server_key)}"


def _hmac(key: bytes, text: bytes) -> bytes:
    return hmac.digest(key, text, "sha256")


def _b64(octets: bytes) -> str:
    return base64.b64encode(octets).decode("ascii")
