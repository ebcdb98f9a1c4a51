"""The programs of a release, as its wheel has them, in an environment of their own."""

import io
import subprocess
import sysconfig
import tarfile
import venv
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_PACKAGES = ("app", "workflows", "activities", "workers")
COMMITS = {"0.1.0": "930863bd915cf99f082acbc43c7967b5c709a06d"}
"""The commit of each release from which an upgrade without an interruption is tested: a clone may lack the tag."""


def environment(folder: Path, release: str) -> Path:
    """Makes an environment with a release in it; returns its interpreter. What the release depends on it borrows from
    this one's environment, where Headwater itself is not found: it is linked there by a `.pth` file, and those of
    borrowed folders don't count. Skips the test in a checkout without the history."""
    venv.create(folder, symlinks=True)
    site_packages = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
    (site_packages / "borrowed.pth").write_text(sysconfig.get_path("purelib"))
    archive = subprocess.run(["git", "-C", _ROOT, "archive", COMMITS[release], *_PACKAGES], capture_output=True)
    if archive.returncode:
        pytest.skip(f"this checkout has no commit of {release}: {archive.stderr.decode().strip()}")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(site_packages, filter="data")
    return folder / "bin" / "python"
