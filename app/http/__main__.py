"""`python -m app.http`: one API process. More of them side by side serve more."""

import asyncio
import gc
import os
import signal
import sys

import uvloop
from granian.constants import Interfaces
from granian.server.embed import Server

from app.core import logging
from app.core.leaving import run_and_leave
from app.core.settings import InvalidSettings, Settings
from app.http.app import create_app
from app.plans.file import use_plans

_MOST_CONNECTIONS = 4096
_OBJECTS_BETWEEN_COLLECTIONS = 20_000
"""Python looks for cycles after 700, which is several times a request and finds none: a tenth of its time."""


async def serve(settings: Settings) -> None:
    """Until SIGINT or SIGTERM."""
    server = Server(
        create_app(settings),
        address=settings.api_host,
        port=settings.api_port,
        interface=Interfaces.ASGI,
        # Bounds open connections, idle ones included: with the default, 128 idle clients shut out everybody else.
        backlog=_MOST_CONNECTIONS,
        backpressure=_MOST_CONNECTIONS,
        log_access=False,
    )
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, server.stop)
    await server.serve()


def main() -> int:
    try:
        settings = Settings.load(os.environ)
        logging.configure(settings.log_format)
        use_plans(settings.plans_file)
        gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
        uvloop.run(serve(settings))
    except (InvalidSettings, ValueError) as fault:
        sys.stderr.write(f"{fault}\n")
        return 2
    return 0


if __name__ == "__main__":
    run_and_leave(main)
