"""The message of a ready stack to its operator."""

import shlex
import sys
from pathlib import Path

from app.local.stack_file import NAME, StackFile

COMMAND = Path(sys.executable).with_name("headwater")


def welcome(
    stack: StackFile, metrics_urls: list[str], home: Path, link: str | None = None, *, command: Path = COMMAND
) -> str:
    """The addresses, a link to sign in with if there is a console, the key, a first request to paste, and the
    operator's command."""
    engines = ", ".join(f"{host.flavour or host.engine} in {host.region}" for host in stack.hosts)
    return f"""
Headwater is ready.

{_console(link)}  API           {stack.api_url}
  Temporal UI   {stack.temporal_ui_url}
  metrics       {", ".join(metrics_urls)}
  engines       {engines}
  API key       {stack.api_key}
  all of it     {home / NAME}
  logs          {home / "logs"}

A first database:

  curl -sS '{stack.api_url}/api/v1/databases?wait=true' \\
    -H 'Authorization: Bearer {stack.api_key}' \\
    -H "Idempotency-Key: $(python3 -c 'import uuid; print(uuid.uuid4())')" \\
    -H 'Content-Type: application/json' \\
    -d '{{"name": "first", "db_type": "postgres"}}'

The operator's command, with psql and pg_dump beside it, in another shell:

  eval "$(HEADWATER_HOME={shlex.quote(str(home))} {shlex.quote(str(command))} env)"
  headwater databases list

Ctrl-C stops everything and keeps the data.
"""


def _console(link: str | None) -> str:
    if link is None:
        return ""
    return f"""  console       {link}
                signs in once, and soon; 'headwater users sign-in-link ID' makes another
"""
