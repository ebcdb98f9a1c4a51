"""The user that runs a database server. The servers refuse to run as root, so root's stack runs them as another
user, who must be able to reach their programs and data."""

import functools
import os
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path

from app.local.errors import StackError

NOBODY = 65_534
"""The one unprivileged account of every distribution. initdb requires that its user has a name."""

_CAP_DAC_READ_SEARCH = 2


@dataclass(frozen=True)
class ServiceUser:
    """The user that a database server runs as, and how to switch to it."""

    uid: int
    prefix: tuple[str, ...]
    """The beginning of the server's command line."""

    def own(self, path: Path) -> None:
        """Makes this user the owner of a file or folder that the stack just created."""
        if self.prefix:
            os.chown(path, self.uid, self.uid)


def service_user(*paths: Path, death_signal: str) -> ServiceUser:
    """The user for a server whose programs and data are in `paths`.

    An ordinary user runs it as itself. Root switches to an unprivileged user, with the capability to read past closed
    parent folders (a clone under /root, a temporary folder of mode 0700) only if there are any. `death_signal` is set
    here because the kernel resets it whenever a process changes its user. Raises `StackError` when it is impossible.
    """
    if os.geteuid() != 0:
        return ServiceUser(uid=os.geteuid(), prefix=())
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise StackError(
            "PostgreSQL refuses to run as root, and `setpriv` (package util-linux), which lets it run as "
            "another user, is not installed. Install it, or run Headwater as an ordinary user."
        )
    prefix = [setpriv, f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    closed = next(filter(None, map(_closed_ancestor, paths)), None)
    if closed is not None:
        if not _may_grant_read_search():
            raise StackError(
                f"PostgreSQL refuses to run as root, and the user it runs as instead can't pass {closed}. "
                f"Open it (chmod o+x {closed}), choose another HEADWATER_HOME, or run Headwater as an "
                "ordinary user."
            )
        # access(2) ignores capabilities of users other than root by default, and initdb calls it.
        prefix += ["--securebits=+no_setuid_fixup", "--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
    return ServiceUser(uid=NOBODY, prefix=(*prefix, f"--pdeathsig={death_signal}", "--"))


def _closed_ancestor(path: Path) -> Path | None:
    return next((parent for parent in path.resolve().parents if not parent.stat().st_mode & stat.S_IXOTH), None)


@functools.cache
def _may_grant_read_search() -> bool:
    # Container runtimes drop this capability even for root by default.
    status = Path("/proc/self/status").read_text()
    sets = dict(line.split(":\t", 1) for line in status.splitlines() if line.startswith("Cap"))
    return all(int(sets[name], 16) >> _CAP_DAC_READ_SEARCH & 1 for name in ("CapPrm", "CapBnd"))
