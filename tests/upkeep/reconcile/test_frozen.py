"""A run meets frozen databases, and changes that are on their way: it neither thaws nor reports them."""

from tests.support.client import Caller
from tests.upkeep.reconcile.conftest import Bench
from tests.upkeep.reconcile.test_hosts import WRECK

ON_ITS_WAY = "access_revision = access_revision + 1"


async def test_a_frozen_one_is_well(bench: Bench, caller: Caller) -> None:
    made = await caller.created(db_type=bench.host.engine)
    await (await bench.adapter()).freeze(bench.tenant(made))
    await bench.set_row(made["uuid"], "frozen_at = now()")
    ran = await bench.run()
    assert await bench.findings(made["uuid"]) == []
    assert not any(made["uuid"] in repair for repair in ran.repairs)


async def test_one_that_wrecked_itself_is_mended_and_stays_frozen(bench: Bench, caller: Caller) -> None:
    made = await caller.created(db_type=bench.host.engine)
    adapter = await bench.adapter()
    await adapter.freeze(bench.tenant(made))
    await bench.set_row(made["uuid"], "frozen_at = now()")
    await bench.as_tenant(made, WRECK[bench.host.engine].format(name=made["db_name"]))
    await bench.run()
    assert "missing_on_host" in await bench.findings(made["uuid"])
    async with bench.session(made) as session:
        refused = False
        try:
            await session.execute("CREATE TABLE more (n int)")
        except Exception:
            refused = True
    assert refused
    await bench.run()
    assert await bench.findings(made["uuid"]) == []


async def test_the_record_says_who_is_frozen(bench: Bench, caller: Caller) -> None:
    made = await caller.created(db_type=bench.host.engine)
    adapter = await bench.adapter()
    for frozen, rule in (("now()", "writes_open"), ("NULL", "missing_on_host")):
        await bench.set_row(made["uuid"], f"frozen_at = {frozen}")
        await bench.run()
        assert await bench.findings(made["uuid"]) == [rule]
        found = await bench.on_host(made["db_name"])
        assert found is not None
        assert found.may_create is (frozen == "NULL")
    await adapter.verify_login(bench.tenant(made))


async def test_what_is_on_its_way_is_no_fault(bench: Bench, caller: Caller) -> None:
    made = await caller.created(db_type=bench.host.engine)
    await bench.set_row(made["uuid"], f"status = 'paused', {ON_ITS_WAY}")
    await bench.run()
    assert await bench.findings(made["uuid"]) == [], "it is on its way back, or to its pause"
    await (await bench.adapter()).freeze(bench.tenant(made))
    await bench.set_row(made["uuid"], "status = 'active'")
    await bench.run()
    assert await bench.findings(made["uuid"]) == [], "its thaw is on its way"
