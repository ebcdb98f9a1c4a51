"""The console's files as they are sent: read, compressed and named by their content once.

All but the index page are below a folder whose name is the hash of all of them. So browsers keep them for ever, and a
page never mixes modules of two versions: imports are relative.
"""

import gzip
import hashlib
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent / "files"
_TYPES = {
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
}
_INDEX = "index.html"
_STYLES = "styles.css"
"""All sheets in one, in the order of their paths: a page is drawn when the last of them is there."""
_START = ("main.js", "pages/databases.js")
"""The page that most visits begin with is loaded with the frame; others are when they are opened."""
_IMPORT = re.compile(rb"""\b(?:from|import)\s*["'](?P<path>\.{1,2}/[^"']+)["']""")
"""Not `import(…)`, which waits until it is reached."""


@dataclass(frozen=True)
class File:
    """What is sent for one address."""

    content: bytes
    compressed: bytes
    """The content, compressed by gzip."""
    media_type: str
    etag: str


@dataclass(frozen=True)
class Files:
    """All files of the console."""

    version: str
    index: File
    visitors_index: File
    """The same for somebody who is surely not signed in."""
    by_path: dict[str, File]
    """The files below the folder of this version, by their path in it."""


@cache
def load_files() -> Files:
    """The files of this process's version. The first call takes a few hundredths of a second."""
    sources = {
        path.relative_to(_FOLDER).as_posix(): path.read_bytes()
        for path in sorted(_FOLDER.rglob("*"))
        if path.suffix in _TYPES and not path.name.startswith(".")
    }
    sheets = [name for name in sources if name.endswith(".css")]
    sources[_STYLES] = b"\n".join(sources.pop(name) for name in sheets)
    index = (_FOLDER / _INDEX).read_bytes()
    version = hashlib.sha256(repr([*sources.items(), index]).encode()).hexdigest()[:16]
    by_path = {name: _file(content, _TYPES[Path(name).suffix]) for name, content in sources.items()}
    page = _index(index, sources, version)
    return Files(
        version=version,
        index=_file(page, "text/html"),
        visitors_index=_file(page.replace(b"<html ", b"<html data-visitor ", 1), "text/html"),
        by_path=by_path,
    )


def first_modules(sources: dict[str, bytes], start: tuple[str, ...] = _START) -> list[str]:
    """The modules that `start` needs before they run, and themselves."""
    found: dict[str, None] = {}
    waiting = [*start]
    while waiting:
        name = waiting.pop(0)
        if name in found or name not in sources:
            continue
        found[name] = None
        waiting += [_resolve(name, match["path"].decode()) for match in _IMPORT.finditer(sources[name])]
    return list(found)


def _resolve(importer: str, path: str) -> str:
    parts = importer.split("/")[:-1]
    for part in path.split("/"):
        if part == "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


def _index(page: bytes, sources: dict[str, bytes], version: str) -> bytes:
    """The index page with the addresses of this version. It names all first modules, so that a browser asks for them at
    once."""
    base = f"/console/{version}"
    links = [f'<link rel="stylesheet" href="{base}/{_STYLES}">']
    links += [f'<link rel="modulepreload" href="{base}/{name}">' for name in first_modules(sources)]
    return page.replace(b"<!-- links -->", "\n".join(links).encode()).replace(b"{base}", base.encode())


def _file(content: bytes, media_type: str) -> File:
    # Without the time of compression, so that all processes send the same bytes.
    compressed = gzip.compress(content, compresslevel=9, mtime=0)
    return File(content, compressed, media_type, f'"{hashlib.sha256(content).hexdigest()[:32]}"')
