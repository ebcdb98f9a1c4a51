"""Which files of which npm package become which vendored module."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Module:
    """A file of a package, and its name in `files/vendor`."""

    package: str
    path: str
    name: str
    appended: str = ""
    """What makes an ES module of a script."""


MODULES = (
    Module("preact", "dist/preact.mjs", "preact.js"),
    Module("preact", "src/index.d.ts", "preact.d.ts"),
    Module("preact", "src/jsx.d.ts", "preact-jsx.d.ts"),
    Module("preact", "src/dom.d.ts", "preact-dom.d.ts"),
    Module("preact", "hooks/dist/hooks.mjs", "hooks.js"),
    Module("preact", "hooks/src/index.d.ts", "hooks.d.ts"),
    Module("htm", "dist/htm.mjs", "htm.js"),
    Module("htm", "dist/htm.d.ts", "htm.d.ts"),
    Module("@preact/signals-core", "dist/signals-core.mjs", "signals-core.js"),
    Module("@preact/signals-core", "dist/signals-core.d.ts", "signals-core.d.ts"),
    Module("@preact/signals", "dist/signals.mjs", "signals.js"),
    Module("@preact/signals", "dist/signals.d.ts", "signals.d.ts"),
    # Its ES module is three times as large, for it isn't minified.
    Module("uplot", "dist/uPlot.iife.min.js", "uplot.js", appended="export default uPlot;\n"),
    Module("uplot", "dist/uPlot.d.ts", "uplot.d.ts"),
    Module("uplot", "dist/uPlot.min.css", "uplot.css"),
)

BUNDLED = "editor.js"
"""The SQL editor, which is some twenty packages: esbuild makes one module of them, which only pages with an editor
load. Beside this file is what it begins with."""
BUNDLED_TYPES = "editor.d.ts"
"""Types of the bundle are not kept: they are those of all its packages. Its names are known, so tsc needn't read it."""

SPECIFIERS: Mapping[str, str] = {
    "preact": "./preact.js",
    "preact/hooks": "./hooks.js",
    "@preact/signals-core": "./signals-core.js",
    "./jsx": "./preact-jsx.js",
    "./dom": "./preact-dom.js",
    "./index": "./preact.js",
    "../../src/index": "./preact.js",
    "./jsx.d.ts": "./preact-jsx.js",
    "./dom.d.ts": "./preact-dom.js",
}
"""Browsers know no names of packages, and an import map would be an inline script."""
