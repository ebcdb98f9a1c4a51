"""`deploy/make-env.sh`: fresh secrets in a file that only its owner reads, and never over another's."""

import base64
import shutil
import ssl
import stat
import subprocess
from pathlib import Path

import pytest

from app.core.secrets import SecretBox
from app.core.settings import Settings
from app.engines.tls import TlsMode, TlsPolicy
from tests.deployment import compose


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "deploy").mkdir()
    for name in (".env.example", "deploy/make-env.sh"):
        shutil.copy(compose.ROOT / name, tmp_path / name)
    return tmp_path


def _make(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    argv = [str(project / "deploy/make-env.sh"), *arguments]
    return subprocess.run(argv, cwd="/", capture_output=True, text=True, check=False)


def _values(project: Path) -> dict[str, str]:
    lines = (project / ".env").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def test_it_fills_everything_in(project: Path) -> None:
    assert _make(project, "db.example.com").returncode == 0
    values = _values(project)
    assert values["ENGINE_PUBLIC_HOST"] == "db.example.com"
    SecretBox.from_setting(values["SECRET_KEYS"])
    passwords = [value for name, value in values.items() if name.endswith("_PASSWORD")]
    assert len(set(passwords)) == len(passwords) == 7
    assert all(len(password) == 48 and password.isalnum() for password in passwords)
    assert stat.S_IMODE((project / ".env").stat().st_mode) == 0o600
    for service in compose.services().values():
        compose.environment(service, values)


@pytest.mark.parametrize("public", ["db.example.com", "192.0.2.7"])
def test_it_makes_a_certificate_for_every_name_of_the_engine_hosts(project: Path, public: str) -> None:
    assert _make(project, public).returncode == 0
    values = _values(project)
    for name in (public, "postgres-us-east-1", "mysql-us-east-1"):
        assert _shakes_hands(project, values, name)
    assert not _shakes_hands(project, values, "other.example.com")
    assert not _shakes_hands(project, values, "192.0.2.8")
    assert not list(project.rglob("*.key"))


def _shakes_hands(folder: Path, values: dict[str, str], name: str) -> bool:
    """Whether a client under `verify-full` takes a server with that certificate for the one of that name."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    for variable in ("ENGINE_CERTIFICATE", "ENGINE_CERTIFICATE_KEY"):
        (folder / variable).write_bytes(base64.b64decode(values[variable]))
    server.load_cert_chain(folder / "ENGINE_CERTIFICATE", folder / "ENGINE_CERTIFICATE_KEY")
    policy = TlsPolicy(mode=TlsMode.VERIFY_FULL, ca=base64.b64decode(values["ENGINE_CA"]).decode())
    assert policy.context is not None
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = policy.context.wrap_bio(back, there, server_hostname=name)
    theirs = server.wrap_bio(there, back, server_side=True)
    for _ in range(3):
        for side in (ours, theirs):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLCertVerificationError:
                return False
    return True


@pytest.mark.parametrize("public", ["192.0.2.999", "192.0.2"])
def test_an_address_that_is_none_leaves_no_file(project: Path, public: str) -> None:
    """Nor one without the certificate that could not be made."""
    ended = _make(project, public)
    assert ended.returncode == 1
    assert public in ended.stderr
    assert not [path.name for path in project.iterdir() if path.name not in (".env.example", "deploy")]


def test_two_installations_share_no_secret(project: Path) -> None:
    _make(project, "db.example.com")
    first = _values(project)
    (project / ".env").unlink()
    _make(project, "db.example.com")
    assert {name for name, value in _values(project).items() if first[name] == value} == {"ENGINE_PUBLIC_HOST"}


def test_it_never_writes_over_what_is_there(project: Path) -> None:
    _make(project, "db.example.com")
    before = (project / ".env").read_bytes()
    assert _make(project, "other.example.com").returncode != 0
    assert (project / ".env").read_bytes() == before
    assert not list(project.glob(".env.draft*"))


def test_it_takes_the_name_of_the_api(project: Path) -> None:
    assert _make(project, "db.example.com", "headwater.example.com").returncode == 0
    assert _values(project)["PUBLIC_HOST"] == "headwater.example.com"
    api = compose.environment(compose.services()["api"], _values(project))
    assert Settings.load(api).public_url == "https://headwater.example.com"


@pytest.mark.parametrize("name", ["https://headwater.example.com", "headwater.example.com:443", "a b"])
def test_a_name_of_the_api_that_is_none(project: Path, name: str) -> None:
    assert _make(project, "db.example.com", name).returncode == 2
    assert not (project / ".env").exists()


def test_it_wants_a_name(project: Path) -> None:
    assert _make(project).returncode == 2
    assert not (project / ".env").exists()


def test_git_leaves_it_alone() -> None:
    assert "/.env" in (compose.ROOT / ".gitignore").read_text().splitlines()
