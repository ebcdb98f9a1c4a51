"""Creating the data folder of a MySQL or MariaDB server, with a single administrator and no other account."""

import asyncio
import re
import subprocess
from pathlib import Path
from typing import Literal

from app.local.errors import StackError
from app.local.processes import Command, run_to_end
from app.local.service_user import ServiceUser, service_user
from app.local.services import server_environ

Flavour = Literal["mysql", "mariadb"]

_TIMEOUT_SECONDS = 180

# In this order, and under the names before and since MariaDB 11. The server's own `mariadb-install-db` does the same,
# but needs programs of other packages and leaves open accounts behind.
_SCRIPTS = (
    ("mariadb_system_tables.sql", "mysql_system_tables.sql"),
    ("mariadb_performance_tables.sql", "mysql_performance_tables.sql"),
    ("mariadb_system_tables_data.sql", "mysql_system_tables_data.sql"),
    ("maria_add_gis_sp_bootstrap.sql",),
    ("mariadb_sys_schema.sql", "mysql_sys_schema.sql"),
)


async def detect_flavour(program: Path) -> Flavour:
    """Asks the server program for its version. Raises `StackError` when it can't be run."""
    version = await _output(program, "--no-defaults", "--version")
    return "mariadb" if "mariadb" in version.lower() else "mysql"


async def create_data_folder(
    program: Path, flavour: Flavour, draft: Path, log: Path, *, user: str, password: str
) -> Path:
    """Creates the data folder, with the system tables, inside the empty folder `draft`, and returns it. Its only usable
    account is `user` at 127.0.0.1, with all rights; there is no anonymous account and no database `test`."""
    owner = service_user(draft, program, death_signal="KILL")
    data = draft / "data"
    script = draft / "install.sql"
    # A starting server removes all temporary tables that it finds in this folder, even those of others.
    temporary = draft / "temporary"
    data.mkdir(mode=0o700)
    temporary.mkdir(mode=0o700)
    script.touch(mode=0o600)
    account = [
        f"CREATE USER '{user}'@'127.0.0.1' IDENTIFIED BY '{password}';",
        f"GRANT ALL PRIVILEGES ON *.* TO '{user}'@'127.0.0.1' WITH GRANT OPTION;",
    ]
    arguments = [f"--datadir={data}", f"--tmpdir={temporary}"]
    if flavour == "mariadb":
        script.write_text(await _mariadb_script(program, account))
        arguments += ["--bootstrap", "--innodb-log-file-size=50331648", "--max-allowed-packet=8M"]
    else:
        script.write_text("\n".join([*account, "DROP USER 'root'@'localhost';", ""]))
        arguments += ["--initialize-insecure", f"--init-file={script}"]
    for path in (draft, data, temporary, script):
        owner.own(path)
    await _run(owner, program, arguments, script, log)
    return data


async def _run(owner: ServiceUser, program: Path, arguments: list[str], script: Path, log: Path) -> None:
    argv = (*owner.prefix, str(program), "--no-defaults", *arguments)
    await run_to_end(
        Command(argv=argv, log=log, environ=server_environ(), folder=Path("/"), stdin=script),
        _TIMEOUT_SECONDS,
    )


async def _mariadb_script(program: Path, account: list[str]) -> str:
    """The input of `mariadbd --bootstrap`, which takes one statement a line."""
    variables = await _output(program, "--no-defaults", "--verbose", "--help")
    found = re.search(r"^character-sets-dir\s+(\S+)", variables, re.MULTILINE)
    share = Path(found[1]).parent if found else Path("/usr/share/mysql")
    lines = ["CREATE DATABASE IF NOT EXISTS mysql;", "USE mysql;", "SET @auth_root_socket=NULL;"]
    for names in _SCRIPTS:
        path = next((share / name for name in names if (share / name).is_file()), None)
        if path is None:
            raise StackError(f"{program} has no {' or '.join(names)} in {share}; is its package complete?")
        lines.append(path.read_text())
    lines += ["DELETE FROM mysql.global_priv WHERE User IN ('', 'root');", "FLUSH PRIVILEGES;", *account, ""]
    return "\n".join(lines)


async def _output(program: Path, *arguments: str) -> str:
    try:
        result = await asyncio.to_thread(
            subprocess.run,
            [str(program), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=server_environ(),
            timeout=30,
            text=True,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise StackError(f"can't run {program}: {error}") from error
    if result.returncode != 0:
        raise StackError(f"{program} {' '.join(arguments)} failed:\n{result.stdout.strip()[-500:]}")
    return result.stdout
