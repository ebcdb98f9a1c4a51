"""`python -m tests.console.check_types`: TypeScript's compiler reads the console's files, strictly, with the types of
the API's description. It writes those types, and what it found, so that it has less to do the next time."""

import asyncio
import hashlib
import sys
from pathlib import Path

from tests.clients.toolbox import ToolFailed, packages, run

_ROOT = Path(__file__).parents[2]
_CONSOLE = _ROOT / "app" / "console"
_DESCRIPTION = _ROOT / "docs" / "openapi.json"


def main() -> int:
    try:
        asyncio.run(_check())
    except ToolFailed as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


async def _check() -> None:
    programs = await asyncio.to_thread(packages) / "node_modules" / ".bin"
    await _write_types(programs)
    found = Path(sys.prefix) / "console.tsbuildinfo"
    await run(str(programs / "tsc"), "--project", ".", "--tsBuildInfoFile", str(found), folder=_CONSOLE)


async def _write_types(programs: Path) -> None:
    """Unless they are those of this description."""
    types = _CONSOLE / "types" / "api.d.ts"
    mark = f"// Of {hashlib.sha256(_DESCRIPTION.read_bytes()).hexdigest()}\n"
    if types.exists() and types.read_text().startswith(mark):
        return
    types.parent.mkdir(exist_ok=True)
    draft = types.with_suffix(".draft")
    await run(str(programs / "openapi-typescript"), str(_DESCRIPTION), "--output", str(draft), folder=_CONSOLE)
    types.write_text(mark + draft.read_text())
    draft.unlink()


if __name__ == "__main__":
    sys.exit(main())
