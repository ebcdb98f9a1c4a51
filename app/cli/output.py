"""What every command shares: how it runs, how its result is shown, how it fails."""

import asyncio
import functools
import inspect
import sys
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import asyncpg
import msgspec
import rich_click as click
from rich.console import Console
from rich.table import Table
from temporalio.service import RPCError

from app.core.errors import AppError
from app.reconcile.report import Report

_FILE_WIDTH = 250

Command = Callable[..., Coroutine[Any, Any, Any]]


def shown(run: Command) -> Callable[..., None]:
    """Makes an async function, whose result is a struct, a list of structs or None, the body of a command with
    `--json`. Errors go to standard error, with exit status 1; a report that is not ok exits with 1 too."""

    @click.option("--json", "as_json", is_flag=True, help="Print JSON.")
    @functools.wraps(run)
    def command(*, as_json: bool, **options: Any) -> None:
        try:
            result = asyncio.run(run(**options))
        except AppError as error:
            raise click.ClickException(error.message) from None
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            raise click.ClickException(f"Our own database can't be reached: {error}") from None
        except (RPCError, RuntimeError) as error:
            raise click.ClickException(f"Temporal can't be reached: {error}") from None
        if as_json:
            sys.stdout.buffer.write(msgspec.json.encode(result) + b"\n")
        else:
            _show(result)
        if isinstance(result, Report) and not result.ok:
            sys.exit(1)

    # Click reads the options from the parameters that its decorators left, not from the wrapped function.
    command.__doc__ = inspect.getdoc(run)
    return command


def _show(result: Any) -> None:
    # What goes into a file or another program is not cut to the width of a terminal.
    console = Console(width=None if sys.stdout.isatty() else _FILE_WIDTH)
    if isinstance(result, list):
        _show_rows(console, result)
        return
    for name, value in _fields(result).items():
        console.print(f"[bold]{name}[/bold]  {_text(value)}", highlight=False, soft_wrap=True)


def _show_rows(console: Console, rows: Sequence[Any]) -> None:
    if not rows:
        console.print("none")
        return
    table = Table(*_fields(rows[0]), box=None, header_style="bold")
    for row in rows:
        table.add_row(*map(_text, _fields(row).values()))
    console.print(table)


def _fields(result: Any) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(result)
    return fields


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, list | tuple):
        return "\n".join(map(str, value)) or "-"
    return str(value)
