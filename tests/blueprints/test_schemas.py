"""Whole schema files: accepted for the engines that they are for, and applied just as the engine's client would.

TEST_SCHEMAS names a folder with more of them, in `postgres` and `mysql`.
"""

import asyncio
import os
from pathlib import Path

import pytest

from app.blueprints.preparation import prepare
from app.blueprints.validation import validate
from app.contracts.base import Engine
from tests.blueprints.loading import apply, catalog, load_plainly
from tests.engines.harness import EngineHost, tenants
from tests.servers import RunningServer

FOLDER = Path(__file__).parent / "schemas"
DIALECTS = {"both": [Engine.POSTGRES, Engine.MYSQL], "postgres": [Engine.POSTGRES], "mysql": [Engine.MYSQL]}
FILES = sorted(FOLDER.glob("*/*.sql"))
MORE = sorted(Path(os.environ.get("TEST_SCHEMAS", "/nonexistent")).glob("*/*.sql"))

each_file = pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}-{file.stem}")


@each_file
def test_a_schema_file_is_valid_for_its_engines(file: Path) -> None:
    verdict = validate(file.read_text(), {})

    assert verdict.errors == []
    assert verdict.manifest.dialects == DIALECTS[file.parent.name]


@each_file
async def test_a_schema_file_applies_as_with_the_engines_client(
    file: Path, host: EngineHost, engine_server: RunningServer
) -> None:
    await _compare(file, host, engine_server)


@pytest.mark.parametrize("file", MORE, ids=lambda file: f"{file.parent.name}-{file.stem}")
async def test_another_schema_file_applies_if_it_is_valid(
    file: Path, host: EngineHost, engine_server: RunningServer
) -> None:
    script = await asyncio.to_thread(file.read_text)
    if not validate(script, {}).valid:
        pytest.skip("not valid")
    if host.flavour == "mariadb" and "->" in script:
        pytest.skip("for MySQL only: MariaDB has no ->")
    await _compare(file, host, engine_server)


async def _compare(file: Path, host: EngineHost, server: RunningServer) -> None:
    engine = Engine.POSTGRES if host.flavour == "postgres" else Engine.MYSQL
    if file.parent.name not in (str(engine), "both"):
        pytest.skip("for the other engine")
    script = await asyncio.to_thread(file.read_text)
    async with tenants(host, 2) as (applied, loaded):
        await apply(host, applied, prepare(script, engine, None, None))
        await load_plainly(server, loaded, script)

        assert await catalog(server, host, applied) == await catalog(server, host, loaded)
