"""Numbers on the command line, refused before they reach our own database."""

import rich_click as click

POSITIVE = click.IntRange(1, 2**31 - 1)
"""An id or a count."""
PORT = click.IntRange(1, 65_535)
