"""`python -m tests.console.install_chromium`: installs the distribution's Chromium if this machine has none, like the
stack does its MySQL server: with windows, and without, which takes a third of its processor time."""

import asyncio
import os
import shutil
import sys
import tempfile
from pathlib import Path

from app.local.apt import install_first, installer
from app.local.screen import Screen

_WITHOUT_WINDOWS = ("chromium-headless-shell",)
_PROGRAMS = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
_PACKAGES = ("chromium", "chromium-browser")


def find_chromium(*, keeping_pages: bool = False) -> Path | None:
    """The program without windows keeps no pages that were left."""
    names = _PROGRAMS if keeping_pages else (*_WITHOUT_WINDOWS, *_PROGRAMS)
    found = (shutil.which(name, path=os.pathsep.join(os.get_exec_path())) for name in names)
    return next((Path(path) for path in found if path), None)


def main() -> int:
    """Returns 0 even without a browser: the tests that need one say so and are skipped."""
    screen = Screen()
    found = find_chromium() or asyncio.run(_install(screen))
    screen.say(f"Chromium: {found or 'none; the tests of the console are skipped'}")
    return 0


async def _install(screen: Screen) -> Path | None:
    runner = installer()
    if runner is None:
        screen.say("no Chromium here, and none can be installed without apt-get and root (or sudo)")
        return None
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "install.log"
        with screen.waiting("Chromium", f"apt-get to install {_PACKAGES[0]}"):
            failure = await install_first(runner, _PACKAGES, log, screen)
            # Not every distribution has it, and nothing needs it.
            await install_first(runner, _WITHOUT_WINDOWS, log, screen)
    if failure is not None:
        screen.say(f"no Chromium could be installed: {failure}")
    return find_chromium()


if __name__ == "__main__":
    sys.exit(main())
