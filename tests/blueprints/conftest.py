"""Engine hosts with tenants, for scripts that run on real servers."""

from tests.engines.conftest import engine_server, host

__all__ = ["engine_server", "host"]
