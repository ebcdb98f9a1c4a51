"""The home folder: one stack at a time, and files that survive a crash unread by others."""

import stat
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from app.core.secrets import SecretBox
from app.local import stack_file
from app.local.errors import StackError
from app.local.files import load_or_create_secret, write_private
from app.local.home import Home
from app.local.stack_file import StackFile, StackHost

STACK = StackFile(
    api_url="http://127.0.0.1:8000",
    api_key="pk_live_x",
    temporal_address="127.0.0.1:7233",
    temporal_namespace="default",
    temporal_ui_url="http://127.0.0.1:8233",
    control_dsn="postgresql://headwater_service:x@127.0.0.1:15431/postgres",
    control_admin_dsn="postgresql://postgres:x@127.0.0.1:15431/postgres",
    hosts=[
        StackHost(engine="postgres", region="us-east-1", host="127.0.0.1", port=15432, admin_dsn="postgresql://a"),
        StackHost(
            engine="mysql",
            region="us-east-1",
            host="127.0.0.1",
            port=13306,
            admin_dsn="mysql://a",
            flavour="mariadb",
        ),
    ],
    processes={"api": [123], "worker": [124]},
)


def test_a_second_stack_is_shown_where_the_first_is(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    with home.locked():
        with pytest.raises(StackError, match="just starting"), Home(home.folder).locked():
            pass
        stack_file.write(home.folder, STACK)
        with pytest.raises(StackError, match=r"already, at http://127\.0\.0\.1:8000 "), Home(home.folder).locked():
            pass
    with Home(home.folder).locked():
        pass


def test_the_file_of_a_stack_of_0_1_0_is_read(tmp_path: Path) -> None:
    fields = msgspec.structs.asdict(STACK)
    del fields["control_admin_dsn"], fields["absent_hosts"]
    (tmp_path / "stack.last.json").write_bytes(msgspec.json.encode(fields))
    last = stack_file.read_last(tmp_path)
    assert last is not None
    assert (last.api_key, last.hosts, last.control_admin_dsn) == (STACK.api_key, STACK.hosts, "")


def test_a_home_that_cannot_be_made_is_explained(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StackError, match="can't use HEADWATER_HOME"), Home(tmp_path / "file" / "home").locked():
        pass


def test_a_full_disk_is_explained(tmp_path: Path) -> None:
    """In a process of its own, which can't write a byte to any file."""
    code = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from app.local.home import Home\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        "with Home(Path(sys.argv[1])).locked():\n"
        "    print('locked')\n"
    )
    ended = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=False)
    assert ended.stdout == ""
    said = f"app.local.errors.StackError: can't use HEADWATER_HOME {tmp_path}: File too large"
    assert ended.stderr.splitlines()[-1] == said


def test_stack_json_is_the_contract(tmp_path: Path) -> None:
    stack_file.write(tmp_path, STACK)
    path = tmp_path / "stack.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    content = msgspec.json.decode(path.read_bytes())
    assert list(content) == [
        "api_url",
        "api_key",
        "temporal_address",
        "temporal_namespace",
        "temporal_ui_url",
        "control_dsn",
        "hosts",
        "processes",
        "control_admin_dsn",
    ]
    assert content["hosts"] == [
        {
            "engine": "postgres",
            "region": "us-east-1",
            "host": "127.0.0.1",
            "port": 15432,
            "admin_dsn": "postgresql://a",
        },
        {
            "engine": "mysql",
            "region": "us-east-1",
            "host": "127.0.0.1",
            "port": 13306,
            "admin_dsn": "mysql://a",
            "flavour": "mariadb",
        },
    ]
    assert content["processes"] == {"api": [123], "worker": [124]}


def test_a_withdrawn_stack_is_remembered_but_not_found(tmp_path: Path) -> None:
    stack_file.write(tmp_path, STACK)
    stack_file.withdraw(tmp_path)
    stack_file.withdraw(tmp_path)
    assert stack_file.read(tmp_path) is None
    assert stack_file.read_last(tmp_path) == STACK


def test_a_torn_stack_json_counts_as_none(tmp_path: Path) -> None:
    (tmp_path / "stack.json").write_text('{"api_url": "http')
    assert stack_file.read(tmp_path) is None


def test_a_private_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o644)
    write_private(path, b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_secret_is_made_once(tmp_path: Path) -> None:
    first = load_or_create_secret(tmp_path / "secret")
    assert len(first) == 48
    assert load_or_create_secret(tmp_path / "secret") == first


def test_secret_keys_are_made_once_and_usable(tmp_path: Path) -> None:
    home = Home(tmp_path)
    keys = home.secret_keys()
    SecretBox.from_setting(keys)
    assert home.secret_keys() == keys
    assert stat.S_IMODE((tmp_path / "secret-keys").stat().st_mode) == 0o600


def test_a_log_that_grows_too_long_is_emptied_under_its_writer(tmp_path: Path) -> None:
    home = Home(tmp_path)
    with home.locked(), home.log("worker").open("ab", buffering=0) as log:
        log.write(b"short\n")
        home.bound_logs(limit=10)
        log.write(b"and now long\n")
        home.bound_logs(limit=10)
        log.write(b"new\n")
    assert home.log("worker").read_bytes() == b"new\n"
    assert (home.logs / "worker.log.1").read_bytes() == b"short\nand now long\n"
