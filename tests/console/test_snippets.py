"""What the page of a database says to paste, for each engine and what its host requires of TLS."""

import asyncio
import os
import shutil
import sys
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.console.browser import Visit

DATABASE = {"host": "db1.example.com", "port": 5432, "db_name": "tname", "db_username": "tname_l1"}
PASSWORD = "zq7'x"
PEM = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
SAID = {
    ("postgres", "disable", None): "sslmode=disable",
    ("postgres", "prefer", None): "sslmode=prefer",
    ("postgres", "require", None): "sslmode=require",
    ("postgres", "require", PEM): "sslmode=verify-ca&sslrootcert=ca.pem",
    ("postgres", "verify-full", None): "sslmode=verify-full&sslrootcert=system",
    ("postgres", "verify-full", PEM): "sslmode=verify-full&sslrootcert=ca.pem",
    ("mysql", "disable", None): "--ssl-mode=DISABLED",
    ("mysql", "prefer", None): "--ssl-mode=PREFERRED",
    ("mysql", "require", None): "--ssl-mode=REQUIRED",
    ("mysql", "require", PEM): "--ssl-mode=VERIFY_CA --ssl-ca=ca.pem",
    ("mysql", "verify-full", None): "--ssl-mode=VERIFY_IDENTITY",
    ("mysql", "verify-full", PEM): "--ssl-mode=VERIFY_IDENTITY --ssl-ca=ca.pem",
}
_ALL = """
async ([cases, password]) => {
  const start = document.querySelector("script[type=module]").src;
  const { snippets } = await import(new URL("pages/database/snippets.js", start));
  return cases.map((one) => snippets(one, password).map(({ id, text }) => [id, text]));
}
"""


async def test_each_is_well_formed_and_as_strict_as_the_host(visit: Visit, tmp_path: Path) -> None:
    page = await visit.open("/databases")
    cases: list[dict[str, Any]] = [
        DATABASE | {"db_type": engine, "tls_mode": mode, "tls_ca": ca, "host": host}
        for (engine, mode, ca), host in product(SAID, ("db1.example.com", "fd00::1"))
    ]
    answered: list[list[tuple[str, str]]] = await page.evaluate(_ALL, [cases, PASSWORD])
    for case, texts in zip(cases, answered, strict=True):
        found = dict(texts)
        assert SAID[case["db_type"], case["tls_mode"], case["tls_ca"]] in found["psql" if "psql" in found else "mysql"]
        for name in ("python", "django"):
            compile(found[name], name, "exec")
        rails = yaml.safe_load(found["rails"])["production"]
        assert (rails["host"], rails["database"]) == (case["host"], "tname")
        assert f"DATABASE_PASSWORD={PASSWORD}" in found["env"].splitlines()
        assert PASSWORD in found["url"]
        assert ("[fd00::1]:5432" in found["url"]) == (case["host"] == "fd00::1")
        for name in ("python", "node", "go", "django", "rails"):
            assert "zq7" not in found[name], "a program takes it from the environment"
    await node_takes(one_script(tmp_path, [dict(texts)["node"] for texts in answered]))


def one_script(folder: Path, programs: list[str]) -> Path:
    """Each is the body of a function of its own; what is imported by it is left out."""
    bodies = ["\n".join(line for line in one.splitlines() if not line.startswith("import ")) for one in programs]
    script = folder / "all.mjs"
    script.write_text("\n".join(f"export async function f{at}() {{\n{body}\n}}" for at, body in enumerate(bodies)))
    return script


async def node_takes(script: Path) -> None:
    node = shutil.which("node", path=f"{Path(sys.prefix) / 'bin'}{os.pathsep}{os.environ['PATH']}")
    if node is None:
        pytest.skip("no Node on this machine")
    process = await asyncio.create_subprocess_exec(node, "--check", str(script))
    assert await process.wait() == 0
