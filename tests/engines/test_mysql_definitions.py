"""What has no rows: a restored copy that lacks or changed a view, a trigger or a routine is noticed."""

import pytest

from app.backups.restoring import differences
from app.engines.dumping import ContentKind
from tests.engines.harness import EngineHost, tenants
from tests.engines.mysql_dumping import dumped, each, run_all, skip_without_tool

pytestmark = pytest.mark.parametrize("engine_server", ["mysql", "oracle"], indirect=True, scope="session")

MADE = (
    "CREATE TABLE notes (id INT PRIMARY KEY, body VARCHAR(50))",
    "CREATE VIEW shown AS SELECT id, body FROM notes WHERE id > 0 WITH CHECK OPTION",
    "CREATE TRIGGER first BEFORE INSERT ON notes FOR EACH ROW SET NEW.body = UPPER(NEW.body)",
    "CREATE TRIGGER second AFTER DELETE ON notes FOR EACH ROW SET @gone = OLD.id /* it's gone */",
    "CREATE FUNCTION twice(n INT) RETURNS INT DETERMINISTIC NO SQL COMMENT 'two' RETURN 2 * n",
    "CREATE PROCEDURE kept(IN word VARCHAR(50), OUT n INT) READS SQL DATA"
    " BEGIN\n  -- counts\n  SELECT COUNT(*) INTO n FROM `{name}`.notes WHERE body = word;\nEND",
)
CHANGES = {
    "views": (("DROP VIEW shown",), ("CREATE VIEW shown AS SELECT id, body FROM notes WHERE id > 0",)),
    "triggers": (("DROP TRIGGER first",), (MADE[2].replace("UPPER", "LOWER"),)),
    "routines": (
        ("DROP FUNCTION twice",),
        (MADE[4].replace("2 *", "3 *"),),
        ("DROP FUNCTION twice", MADE[4].replace("(n INT)", "(n BIGINT)")),
    ),
}


@pytest.fixture(autouse=True)
async def _tool(host: EngineHost) -> None:
    await skip_without_tool(host)


async def test_what_is_lost_or_changed_in_a_copy_is_noticed(host: EngineHost) -> None:
    async with tenants(host, 2) as [source, target]:
        await run_all(host, source, *(statement.replace("{name}", source.name) for statement in MADE))
        chunks, form, told = await dumped(host, source)
        assert {one.name: one.rows for one in told if one.kind is ContentKind.DEFINITIONS} == {
            "views": 1,
            "triggers": 2,
            "routines": 2,
        }
        await host.adapter.load(target, form, each(chunks))
        before = await host.adapter.contents(target)
        assert before == told
        for kind, change in [(kind, change) for kind, changes in CHANGES.items() for change in changes]:
            await run_all(host, target, *change)
            now = await host.adapter.contents(target)
            assert [one.name for one in differences(before, now)] == [kind], change
            before = now


async def test_what_is_defined_while_a_dump_runs_fails_neither_it_nor_its_proof(host: EngineHost) -> None:
    async with tenants(host, 2) as [source, target]:
        await run_all(host, source, *MADE[:2])

        async def define() -> None:
            await run_all(host, source, "CREATE VIEW later AS SELECT 1 AS n")

        chunks, form, told = await dumped(host, source, define)
        assert "views" not in {one.name for one in told}
        assert "triggers" in {one.name for one in told}
        await host.adapter.load(target, form, each(chunks))
        assert differences(told, await host.adapter.contents(target)) == []
