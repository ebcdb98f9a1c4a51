"""`headwater env`: environment variables for a shell, so that it finds this command and the matching clients."""

import contextlib
import os
import shlex
import sys
from pathlib import Path

import msgspec
import rich_click as click

from app.cli.writing import writing
from app.core.settings import InvalidSettings, Settings
from app.local.errors import StackError
from app.local.postgres import find_programs


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    home: str
    """`HEADWATER_HOME` as an absolute path, so that the command works from any folder."""
    path: list[str]
    """Folders to put first on the PATH: this command's, and the embedded PostgreSQL's with `psql` and `pg_dump`."""


@click.command("env")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def env(as_json: bool) -> None:
    """Print what puts `headwater`, `psql` and `pg_dump` on the PATH: eval "$(headwater env)"."""
    found = _environment()
    with writing():
        if as_json:
            click.echo(msgspec.json.encode(found))
            return
        click.echo(f"export HEADWATER_HOME={shlex.quote(found.home)}")
        click.echo(f'export PATH={shlex.quote(":".join(found.path))}:"$PATH"')


def _environment() -> Environment:
    try:
        given = Settings.load(os.environ)
    except InvalidSettings as error:
        raise click.ClickException(str(error)) from None
    folders = [Path(sys.executable).parent]
    # A machine without the embedded servers has only the command.
    with contextlib.suppress(StackError):
        folders.append(find_programs(given.postgres_bin))
    return Environment(home=str(given.home.absolute()), path=[str(folder) for folder in folders])
