"""An OpenID Connect provider: a real one, on this machine."""

import importlib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from tests.sessions.pkce import Pkce

GRACE = {"email": "Grace@example.com", "email_verified": True, "name": "Grace\u202e\nH."}
KNOWN, UNKNOWN, UNVERIFIED = "subject-1", "subject-2", "subject-3"


@contextmanager
def running_provider() -> Iterator[str]:
    """Its issuer."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mock = importlib.import_module("oidc_provider_mock")
    users = [
        mock.User(sub=KNOWN, claims={"email": "ada@example.com", "email_verified": True}),
        mock.User(sub=UNKNOWN, claims={"email": "nobody@example.com", "email_verified": True}),
        mock.User(sub=UNVERIFIED, claims={"email": "ada@example.com", "email_verified": False}),
        mock.User(sub="invited", claims=GRACE),
        mock.User(sub="capital", claims={"email": "Joan@Example.com", "email_verified": True}),
        mock.User(sub="second", claims={"email": "ada@example.com", "email_verified": True}),
    ]
    with mock.run_server_in_thread(user_claims=users, require_nonce=True) as server:
        server.app = Pkce(server.app)
        yield f"http://localhost:{server.server_port}"
