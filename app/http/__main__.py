"""`python -m app.http`: one API process. More of them side by side serve more."""

import asyncio
import gc
import logging as stdlib_logging
import os
import signal
import sys

import uvloop
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.log import LogLevels
from granian.server.embed import Server

from app.core import logging
from app.core.process_exit import run_and_exit
from app.core.settings import InvalidSettings, Settings
from app.http.app import create_app
from app.quotas.file import use_plans

_LEAST_BACKLOG = 128
"""Of connections that wait to be accepted; granian takes no fewer."""
_OBJECTS_BETWEEN_COLLECTIONS = 20_000
"""Python looks for cycles after 700, which is several times a request and finds none: a tenth of its time."""
_SERVER_LOGGER = "_granian"
_LOGGING = {"loggers": {_SERVER_LOGGER: {"propagate": True}}}
"""The server's own lines in the form of all others, in place of a form of its own on standard output."""


async def serve(settings: Settings) -> None:
    """Until SIGINT or SIGTERM."""
    _silence_known_warning()
    server = Server(
        create_app(settings),
        address=settings.api_host,
        port=settings.api_port,
        interface=Interfaces.ASGI,
        # Bounds open connections, idle ones included: with the default, 128 idle clients shut out everybody else.
        backlog=max(settings.api_connections, _LEAST_BACKLOG),
        backpressure=settings.api_connections,
        # With HTTP/2 beside it, the server would wait without end for the bytes that tell one from the other.
        http=HTTPModes.http1,
        http1_settings=HTTP1Settings(header_read_timeout=round(1000 * settings.request_head_timeout_seconds)),
        # The access log is ours: it knows the route, the key and the request's id.
        log_access=False,
        log_dictconfig=_LOGGING,
        log_level=LogLevels(settings.log_level),
    )
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, server.stop)
    await server.serve()


def _silence_known_warning() -> None:
    """Of every start: that the form of the server which runs in its caller's event loop is experimental. Decision 25
    says why we take it."""
    known = "Embedded server is experimental!"
    stdlib_logging.getLogger(_SERVER_LOGGER).addFilter(lambda record: record.getMessage() != known)


def main() -> int:
    try:
        settings = Settings.load(os.environ)
        logging.configure(settings.log_format, settings.log_level)
        use_plans(settings.plans_file)
        gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
        uvloop.run(serve(settings))
    except (InvalidSettings, ValueError) as fault:
        sys.stderr.write(f"{fault}\n")
        return 2
    return 0


if __name__ == "__main__":
    run_and_exit(main)
