"""Our own database as each release left it: its schema, with data in every table, in `releases/VERSION.sql`.

`python -m tests.store.releases 0.2.0` writes the file of the release that is being made: the newest one's data, brought
to this version's tables.
"""

import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path

from app.local.postgres import find_programs
from app.store.migrate import migrate
from tests import servers
from tests.support.store import new_database, store

SECRET_KEYS = "k1:ripfYr3FPLPEKQ8SYvR2i0zzi0ktKqO5tSOH+CzgC90="
"""What the releases' databases are sealed with."""

_FOLDER = Path(__file__).with_name("releases")


def releases() -> list[str]:
    """The oldest first."""
    return sorted(
        (file.stem for file in _FOLDER.glob("*.sql")), key=lambda name: [int(part) for part in name.split(".")]
    )


def load(dsn: str, release: str) -> None:
    """Fills an empty database."""
    _run("psql", "--quiet", "--no-psqlrc", "--set=ON_ERROR_STOP=1", f"--file={_FOLDER / release}.sql", dsn)


def dump(dsn: str, *options: str) -> str:
    """As `pg_dump` writes it, without its comments and without the random word that it puts into each dump."""
    text = _run("pg_dump", "--no-owner", "--no-privileges", *options, dsn)
    dull = ("--", "\\restrict", "\\unrestrict")
    return "".join(f"{line}\n" for line in text.splitlines() if line and not line.startswith(dull))


def schema(dsn: str) -> list[str]:
    return dump(dsn, "--schema-only").splitlines()


def _run(program: str, *arguments: str) -> str:
    argv = [str(find_programs(None) / program), *arguments]
    return subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True).stdout


async def _upgraded(folder: Path) -> str:
    """The newest release's database, brought to this version's tables."""
    async with servers.postgres(folder) as server:
        dsn = await new_database(server.admin_dsn)
        load(dsn, releases()[-1])
        async with store(dsn):
            await migrate()
        return dump(dsn)


def main(release: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o711)  # the server may have a user of its own
        (_FOLDER / f"{release}.sql").write_text(asyncio.run(_upgraded(Path(folder))))


if __name__ == "__main__":
    main(sys.argv[1])
