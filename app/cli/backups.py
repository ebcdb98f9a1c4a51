"""`headwater backups`: the backups of all databases."""

import rich_click as click

from app.cli import stored_backups, taken_backups


@click.group()
def backups() -> None:
    """Backups of all databases, in our records and in the store."""


for command in (*taken_backups.COMMANDS, *stored_backups.COMMANDS):
    backups.add_command(command)
