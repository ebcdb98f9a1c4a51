"""`headwater`: the operator's command."""

import sys
from importlib import import_module

import rich_click as click

from app.core import logging
from app.core.process_exit import run_and_exit

_MODULES = {
    "users": "accounts",
    "keys": "accounts",
    "teams": "accounts",
    "databases": "databases",
    "backups": "backups",
    "hosts": "hosts",
    "pool": "pool",
    "secrets": "secrets",
    "blueprints": "blueprints",
    "operations": "operations",
    "usage": "usage",
    "webhooks": "webhooks",
    "workflows": "workflows",
    "audit": "audit",
    "check": "check",
    "migrate": "migrate",
    "env": "environment",
}
"""Commands with the module of this folder that each is in."""


class Commands(click.RichGroup):
    """Imports a command when it is asked for: to import all of them takes a second, most of a short command's time."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*self.commands, *_MODULES})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in _MODULES and cmd_name not in self.commands:
            module = import_module(f"app.cli.{_MODULES[cmd_name]}")
            self.add_command(getattr(module, cmd_name))
        return super().get_command(ctx, cmd_name)


@click.group(cls=Commands)
@click.version_option(package_name="headwater")
def main() -> None:
    """Operate Headwater. Works against the stack that runs in HEADWATER_HOME, or what HEADWATER_CONTROL_DSN names."""


@main.command()
@click.option("--json", "as_json", is_flag=True, help="Print what stack.json has, on a line, when the stack is ready.")
def up(as_json: bool) -> None:
    """Run the whole stack in the foreground until Ctrl-C."""
    sys.exit(import_module("app.local.__main__").main(as_json=as_json))


def run() -> None:
    logging.configure(level="warning")
    run_and_exit(main)
