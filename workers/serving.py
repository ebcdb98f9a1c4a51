"""Works for the queues that the command line names, until it is asked to stop."""

import argparse
import asyncio
import gc
import os
import re
import signal
import sys

import uvloop

from app.contracts.queues import CONTROL_QUEUE, WEBHOOK_QUEUE
from app.core import logging
from app.core.memory import share_arenas
from app.core.settings import InvalidSettings, Settings
from app.core.tracing.exporter import tracer_of
from app.core.tracing.settings import TracingSettings
from app.core.tracing.spans import Tracer
from app.store.migrate import MigrationFailed
from workers.log_ids import ids_beside_messages
from workers.runner import run

_ENGINE_QUEUE = re.compile(r"engine:[a-z0-9-]+")


def main() -> int:
    gc.enable()
    share_arenas()
    parser = argparse.ArgumentParser(prog="python -m workers")
    parser.add_argument("--queue", action="append", required=True, type=known_queue, metavar="QUEUE")
    queues = list(dict.fromkeys(parser.parse_args().queue))
    try:
        settings = Settings.load(os.environ)
        logging.configure(settings.log_format, settings.log_level)
        ids_beside_messages()
        tracer = tracer_of(TracingSettings.load(os.environ), "headwater-worker")
        uvloop.run(_serve(settings, queues, tracer))
    except (InvalidSettings, MigrationFailed, ValueError) as fault:
        sys.stderr.write(f"{fault}\n")
        return 2
    return 0


async def _serve(settings: Settings, queues: list[str], tracer: Tracer | None) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    await run(settings, queues, stop, tracer)


def known_queue(name: str) -> str:
    """Returns the name. Raises argparse's error for a name that is not a queue's."""
    if name in (CONTROL_QUEUE, WEBHOOK_QUEUE) or _ENGINE_QUEUE.fullmatch(name):
        return name
    raise argparse.ArgumentTypeError(
        f"{name!r} is no queue; expected {CONTROL_QUEUE}, {WEBHOOK_QUEUE} or engine:<region>"
    )
