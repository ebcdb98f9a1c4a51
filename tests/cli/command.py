"""Running `headwater` as an operator does, with an environment of the test's own."""

import asyncio
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import rich_click as click
from click.testing import CliRunner, Result

from app.cli.main import main
from app.store.engine import DB


def commands_of(group: click.Group = main) -> dict[str, click.Command]:
    """By name: those that are imported when they are asked for, too."""
    context = click.Context(group)
    found = {name: group.get_command(context, name) for name in group.list_commands(context)}
    return {name: command for name, command in found.items() if command is not None}


@dataclass(frozen=True)
class Headwater:
    """The command, under these `HEADWATER_…` settings and no other."""

    settings: Mapping[str, str]

    def with_settings(self, **settings: str) -> "Headwater":
        return Headwater({**self.settings, **settings})

    async def run(self, *arguments: str, given: str | None = None) -> Result:
        """In this process, in a thread: each command runs an event loop of its own, and opens its own connections
        whatever the test holds open."""
        unset: dict[str, str | None] = {name: None for name in os.environ if name.startswith("HEADWATER_")}
        environ = unset | {f"HEADWATER_{name}": value for name, value in self.settings.items()}
        outer = DB.config, DB.pool
        DB.pool = None
        try:
            return await asyncio.to_thread(CliRunner(env=environ).invoke, main, arguments, given)
        finally:
            DB.config, DB.pool = outer

    async def json(self, *arguments: str, given: str | None = None) -> Any:
        """What a command prints with `--json`, with this on its standard input."""
        result = await self.run(*arguments, "--json", given=given)
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    async def text(self, *arguments: str) -> str:
        """What it prints for a person."""
        result = await self.run(*arguments)
        assert result.exit_code == 0, result.output
        return result.stdout

    async def refusal(self, *arguments: str, exit_code: int = 1) -> str:
        """What it says on standard error when it refuses; it then prints nothing."""
        result = await self.run(*arguments)
        assert result.exit_code == exit_code, result.output
        assert result.stdout == ""
        assert "Traceback" not in result.stderr
        return " ".join(result.stderr.replace("│", " ").split())
