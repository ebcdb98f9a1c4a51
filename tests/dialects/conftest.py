"""Engine hosts, for what a dialect says of SQL and the server has to confirm."""

from tests.engines.conftest import engine_server, host

__all__ = ["engine_server", "host"]
