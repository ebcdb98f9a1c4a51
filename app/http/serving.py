"""Serves the API in this process until it is asked to stop."""

import asyncio
import gc
import logging as stdlib_logging
import os
import signal
import socket
import sys

import uvloop
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.log import LogLevels
from granian.server.embed import Server

from app.core import logging
from app.core.settings import InvalidSettings, Settings
from app.core.tracing.exporter import tracer_of
from app.core.tracing.settings import TracingSettings
from app.core.tracing.spans import Tracer
from app.http.app import create_app

_LEAST_BACKLOG = 128
"""The least backlog of unaccepted connections that granian takes."""
_OBJECTS_BETWEEN_COLLECTIONS = 20_000
"""By default Python looks for cycles after 700 objects, which is several times in each request and finds none: a
tenth of its time."""
_SERVER_LOGGER = "_granian"
_LOGGING = {"loggers": {_SERVER_LOGGER: {"propagate": True}}}
"""Writes the server's own log lines in our format, in place of its own on standard output."""


async def serve(settings: Settings, tracer: Tracer | None = None) -> None:
    """Runs until SIGINT or SIGTERM; after that it goes on for the time that the settings say, and says that it is not
    ready. A second signal ends it at once. `tracer` is that of the process, if it traces."""
    _silence_known_warning()
    _refuse_taken_port(settings.api_host, settings.api_port)
    stopping, leaving = asyncio.Event(), asyncio.Event()
    server = Server(
        create_app(settings, stopping, leaving, tracer=tracer),
        address=settings.api_host,
        port=settings.api_port,
        interface=Interfaces.ASGI,
        # Limits open connections, idle ones included: with the default, 128 idle clients would exclude everybody else.
        backlog=max(settings.api_connections, _LEAST_BACKLOG),
        backpressure=settings.api_connections,
        # With HTTP/2 enabled, the server would wait without limit for the bytes that decide between the two versions.
        http=HTTPModes.http1,
        http1_settings=HTTP1Settings(header_read_timeout=round(1000 * settings.request_head_timeout_seconds)),
        # The access log is our own: it has the route, the key and the request's id.
        log_access=False,
        log_dictconfig=_LOGGING,
        log_level=LogLevels(settings.log_level),
    )

    def stop() -> None:
        # First, for the server waits for the answers that are under way.
        stopping.set()
        server.stop()  # type: ignore[no-untyped-call]  # the server has no types

    def leave() -> None:
        if leaving.is_set():
            stop()
        else:
            leaving.set()
            loop.call_later(settings.api_leave_seconds, stop)

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, leave)
    await server.serve()


def _silence_known_warning() -> None:
    """The warning at every start that the server's mode in its caller's event loop is experimental. Decision 25 says
    why we use it."""
    known = "Embedded server is experimental!"
    stdlib_logging.getLogger(_SERVER_LOGGER).addFilter(lambda record: record.getMessage() != known)


class PortTaken(Exception):
    """Another process listens on the address that the settings name."""


def _refuse_taken_port(host: str, port: int) -> None:
    """Raises `PortTaken` where another process has the port. granian shares a port with any other process that does so
    too (SO_REUSEPORT): two services on the same one by mistake would each answer some of the other's requests. A socket
    that doesn't share finds that out."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        # As servers do: connections that have just ended are no server.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise PortTaken(f"can't listen on {host}:{port}: {error.strerror}") from error


def main() -> int:
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    gc.enable()
    try:
        settings = Settings.load(os.environ)
        logging.configure(settings.log_format, settings.log_level)
        tracer = tracer_of(TracingSettings.load(os.environ), "headwater-api")
        uvloop.run(serve(settings, tracer))
    except (InvalidSettings, ValueError) as fault:
        sys.stderr.write(f"{fault}\n")
        return 2
    except PortTaken as fault:
        sys.stderr.write(f"{fault}\n")
        return 1
    return 0
