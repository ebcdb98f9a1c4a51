"""`headwater`: the operator's command."""

import sys

import rich_click as click

from app.cli.accounts import keys, teams, users
from app.cli.audit import audit
from app.cli.backups import backups
from app.cli.blueprints import blueprints
from app.cli.check import check
from app.cli.databases import databases
from app.cli.environment import env
from app.cli.hosts import hosts
from app.cli.migrate import migrate
from app.cli.operations import operations
from app.cli.pool import pool
from app.cli.secrets import secrets
from app.cli.usage import usage
from app.cli.webhooks import webhooks
from app.cli.workflows import workflows
from app.core import logging
from app.core.process_exit import run_and_exit
from app.local.__main__ import main as run_stack


@click.group()
@click.version_option(package_name="headwater")
def main() -> None:
    """Operate Headwater. Works against the stack that runs in HEADWATER_HOME, or what HEADWATER_CONTROL_DSN names."""


@main.command()
def up() -> None:
    """Run the whole stack in the foreground until Ctrl-C."""
    sys.exit(run_stack())


for command in (
    users,
    keys,
    teams,
    databases,
    backups,
    hosts,
    pool,
    secrets,
    blueprints,
    operations,
    usage,
    webhooks,
    workflows,
    audit,
    check,
    migrate,
    env,
):
    main.add_command(command)


def run() -> None:
    logging.configure(level="warning")
    run_and_exit(main)
