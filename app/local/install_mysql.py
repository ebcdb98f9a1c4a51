"""`python -m app.local.install_mysql`: installs a MySQL server and its dump tool if this machine has none, like
the stack does."""

import asyncio
import os
import sys
import tempfile
from pathlib import Path

from app.core.settings import InvalidSettings, Settings
from app.local.dump_tools import ensure_dump_tool
from app.local.errors import StackError
from app.local.mysql_source import MysqlSource
from app.local.screen import Screen


def main() -> int:
    """Returns 0 even without a server: everything but MySQL works, and its tests say why they are skipped."""
    screen = Screen()
    try:
        settings = Settings.load(os.environ)
        source = MysqlSource.of_machine()
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "install.log"
            found = asyncio.run(_install(source, settings.mysqld, screen, log))
    except (InvalidSettings, StackError) as error:
        screen.fail(str(error))
        return 1
    screen.say(f"MySQL server: {found or 'none; going on without'}")
    return 0


async def _install(source: MysqlSource, given: Path | None, screen: Screen, log: Path) -> Path | None:
    found = await source.find_or_install(given, screen, log)
    if found is not None:
        await ensure_dump_tool(found, screen, log)
    return found


if __name__ == "__main__":
    sys.exit(main())
