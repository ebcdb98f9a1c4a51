"""Clients generated from the API's description drive a running API, and linters have nothing against it."""

import json
from collections.abc import AsyncIterator
from uuid import UUID

import pytest
import pytest_asyncio

from tests.clients.toolbox import Toolbox, toolbox
from tests.support.client import Caller
from tests.support.routes import describe
from tests.support.service import RunningService

OPERATIONS = [operation["operationId"] for item in describe()["paths"].values() for operation in item.values()]


@pytest_asyncio.fixture(scope="session")
async def tools(tmp_path_factory: pytest.TempPathFactory) -> Toolbox:
    return await toolbox(tmp_path_factory.mktemp("clients"))


@pytest_asyncio.fixture(scope="session")
async def generated(tools: Toolbox) -> AsyncIterator[Toolbox]:
    await tools.generate()
    yield tools


@pytest.mark.parametrize("client", ["openapi_python_client", "openapi_fetch", "hey_api"])
async def test_a_databases_life(generated: Toolbox, service: RunningService, caller: Caller, client: str) -> None:
    environ = {"API_URL": str(service.http.base_url), "API_KEY": caller.api_key}
    answers = json.loads(await generated.run(*generated.driver(client), **environ))
    assert answers.pop("got").startswith("postgresql://")
    assert answers == {
        "created": "active",
        "renamed": "orders-eu",
        "limited": 5,
        "deleted": True,
        "gone": "not_found",
        "kept": ["orders-eu"],
        "back": "active",
    }


def test_no_operation_is_left_out(generated: Toolbox) -> None:
    python = {path.stem for path in generated.folder.glob("openapi_python/api/*/*.py")}
    hey_api = (generated.folder / "hey_api" / "sdk.gen.ts").read_text()
    openapi_typescript = (generated.folder / "openapi_typescript.ts").read_text()
    for operation in OPERATIONS:
        assert "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in operation) in python
        assert f"export const {operation} =" in hey_api
        assert f'operations["{operation}"]' in openapi_typescript


def test_errors_are_of_few_classes(generated: Toolbox) -> None:
    models = {path.stem for path in generated.folder.glob("openapi_python/models/*.py")}
    assert {name for name in models if "error" in name} == {
        "error_answer",
        "error_body",
        "error_body_details",
        "statement_error",
    }
    assert len(models) < 4 * len(OPERATIONS)


async def test_redocly_finds_no_error(tools: Toolbox) -> None:
    await tools.tool("redocly", "lint", "--config=redocly.yaml", "openapi.json")


async def test_spectral_finds_no_error(tools: Toolbox) -> None:
    await tools.tool("spectral", "lint", "--ruleset=spectral.yaml", "--fail-severity=error", "openapi.json")


async def test_two_changes_in_a_row_on_the_page_do_not_conflict(tools: Toolbox, service: RunningService) -> None:
    printed = json.loads(await tools.node("page.mjs", str(service.http.base_url)))
    first, second = UUID(printed.pop("first")), UUID(printed.pop("second"))
    assert first != second
    assert (first.version, second.version) == (4, 4)
    assert printed == {"typed": "mine", "reads": None, "demanded": 0}
