"""Types of command-line parameters, checked before our own database is used."""

import rich_click as click

from app.contracts.base import Engine

POSITIVE = click.IntRange(1, 2**31 - 1)
"""An id or a count."""
PORT = click.IntRange(1, 65_535)
ENGINE = click.Choice([engine.value for engine in Engine])
ENGINE_HELP = "MariaDB goes by mysql."
