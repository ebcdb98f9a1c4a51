"""`headwater env`: what a shell needs to have this command and the matching clients at hand."""

import contextlib
import os
import shlex
import sys
from pathlib import Path

import msgspec
import rich_click as click

from app.core.settings import InvalidSettings, Settings
from app.local.errors import StackError
from app.local.postgres import find_programs


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    home: str
    """`HEADWATER_HOME`, whole, so that the command works from any folder."""
    path: list[str]
    """Folders to search first: this command's, and that of the embedded PostgreSQL's `psql` and `pg_dump`."""


@click.command("env")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def env(as_json: bool) -> None:
    """Print what puts `headwater`, `psql` and `pg_dump` at hand: eval "$(headwater env)"."""
    found = _environment()
    if as_json:
        sys.stdout.buffer.write(msgspec.json.encode(found) + b"\n")
        return
    click.echo(f"export HEADWATER_HOME={shlex.quote(found.home)}")
    click.echo(f'export PATH={shlex.quote(":".join(found.path))}:"$PATH"')


def _environment() -> Environment:
    try:
        given = Settings.load(os.environ)
    except InvalidSettings as error:
        raise click.ClickException(str(error)) from None
    folders = [Path(sys.executable).parent]
    # A machine without the embedded servers has the command alone.
    with contextlib.suppress(StackError):
        folders.append(find_programs(given.postgres_bin))
    return Environment(home=str(given.home.absolute()), path=[str(folder) for folder in folders])
