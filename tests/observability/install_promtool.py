"""`python -m tests.observability.install_promtool`: puts the distribution's promtool into the environment if this
machine has none. The package is unpacked, not installed: installed, it would start a Prometheus."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from app.local.apt import installer
from app.local.screen import Screen
from tests.observability.promtool import OWN, find_promtool

_PACKAGE = "prometheus"


def main() -> int:
    """Returns 0 even without one: the tests that need it say so and are skipped."""
    found = find_promtool() or _unpacked()
    Screen().say(f"promtool: {found or 'none; the tests of alerts are skipped'}")
    return 0


def _unpacked() -> Path | None:
    apt_get, unpack = shutil.which("apt-get"), shutil.which("dpkg-deb")
    if apt_get is None or unpack is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        if not _run([apt_get, "download", _PACKAGE], folder):
            # The lists of packages may be old, or there may be none.
            update = installer()
            if (
                update is None
                or not _run([*update, "update"], folder)
                or not _run([apt_get, "download", _PACKAGE], folder)
            ):
                return None
        [package] = Path(folder).glob(f"{_PACKAGE}_*.deb")
        target = OWN.parents[2]
        target.mkdir(parents=True, exist_ok=True)
        if not _run([unpack, "--extract", str(package), str(target)], folder):
            return None
    return find_promtool()


def _run(argv: list[str], folder: str) -> bool:
    return subprocess.run(argv, cwd=folder, capture_output=True, check=False, timeout=600).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
