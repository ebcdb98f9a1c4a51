"""What all commands share: running, showing the result, and errors."""

import asyncio
import functools
import inspect
import sys
from collections.abc import Callable, Coroutine
from typing import Any

import asyncpg
import msgspec
import rich_click as click
from temporalio.service import RPCError

from app.cli.tables import Rows, show
from app.cli.writing import writing
from app.core.errors import AppError
from app.core.secrets import InvalidSecret
from app.upkeep.reconcile.findings import Report

_ENCODER = msgspec.json.Encoder(decimal_format="number")
"""As the API's: a `Decimal` is a whole number that may have more than 64 bits."""
Command = Callable[..., Coroutine[Any, Any, Any]]


def shown(run: Command) -> Callable[..., None]:
    """Makes an async function the body of a command with `--json`. Its result is a struct, a list of structs,
    `Rows`, text or None. Errors go to standard error, with exit status 1; a report that is not ok exits with 1 too."""

    @click.option("--json", "as_json", is_flag=True, help="Print JSON.")
    @functools.wraps(run)
    def command(*, as_json: bool, **options: Any) -> None:
        result = _ran(run, options)
        with writing():
            if as_json:
                listed = result.rows if isinstance(result, Rows) else result
                click.echo(_ENCODER.encode(listed))
            else:
                show(result)
        if isinstance(result, Report) and not result.ok:
            sys.exit(1)

    # Click reads the options from the attributes that its decorators left, not from the wrapped function.
    command.__doc__ = inspect.getdoc(run)
    return command


def silent(run: Command) -> Callable[..., None]:
    """The same for a command that writes JSON to standard output by itself, with `--json` and without."""

    @click.option("--json", is_flag=True, expose_value=False, help="Changes nothing: it always prints JSON.")
    @functools.wraps(run)
    def command(**options: Any) -> None:
        _ran(run, options)

    command.__doc__ = inspect.getdoc(run)
    return command


def _ran(run: Command, options: dict[str, Any]) -> Any:
    try:
        return asyncio.run(run(**options))
    except AppError as error:
        raise click.ClickException(error.message) from None
    except InvalidSecret as error:
        raise click.ClickException(
            f"The stored secrets can't be opened: {error}. Set HEADWATER_SECRET_KEYS as the service has it."
        ) from None
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        raise click.ClickException(f"Our own database can't be reached: {error}") from None
    except click.Abort:  # a RuntimeError too
        raise
    except (RPCError, RuntimeError) as error:
        raise click.ClickException(f"Temporal can't be reached: {error}") from None
