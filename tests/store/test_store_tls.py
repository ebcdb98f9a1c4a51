"""Our own database is asked for TLS as its string says."""

import ssl
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import trustme

from app.local.ports import LOOPBACK
from app.store.session import connected, fetch
from tests.support.tls_front import postgres_front

OURS, THEIRS = trustme.CA(), trustme.CA()


async def test_the_string_decides(control_dsn: str, tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours.pem", tmp_path / "theirs.pem"
    OURS.cert_pem.write_to_path(ours)
    THEIRS.cert_pem.write_to_path(theirs)
    parts = urlsplit(control_dsn)
    assert parts.port is not None
    async with postgres_front(parts.port, OURS.issue_cert(LOOPBACK)) as front:
        dsn = control_dsn.replace(f":{parts.port}", f":{front.port}")
        async with connected(f"{dsn}?sslmode=verify-full&sslrootcert={ours}"):
            assert await fetch("SELECT 1")
        assert (front.plain, front.encrypted > 0) == (0, True)
        with pytest.raises(ssl.SSLError):
            async with connected(f"{dsn}?sslmode=verify-full&sslrootcert={theirs}"):
                pass
        assert front.plain == 0
    async with postgres_front(parts.port, None) as plain:
        dsn = control_dsn.replace(f":{parts.port}", f":{plain.port}")
        with pytest.raises(ConnectionError):
            async with connected(f"{dsn}?sslmode=require"):
                pass
