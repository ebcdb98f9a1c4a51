"""How much definitions of variables and their values may be."""

import json

from app.blueprints.bounds import MAX_BYTES
from app.blueprints.pattern_parts import parts_of
from app.store.session import execute
from tests.support.answers import body_of, data_of, field_of
from tests.support.client import Caller
from tests.support.in_process import LoneApi
from tests.support.moves import make_active
from tests.support.together import together

LARGE = "x" * MAX_BYTES
FITTING = "x" * (MAX_BYTES - 100)


async def saved(caller: Caller, **definition: object) -> str:
    """A blueprint with one variable."""
    body = {"name": "one", "sql_content": "SELECT {{a}}", "variables": {"a": {"type": "string", **definition}}}
    return str(data_of(await caller.post("/blueprints", body), 201)["uuid"])


async def active(caller: Caller) -> str:
    """The path of the applications to a new database."""
    uuid = data_of(await caller.create(), 202)["uuid"]
    await make_active(uuid)
    return f"/databases/{uuid}/blueprint_applications"


async def test_definitions_have_so_many_bytes(lone: LoneApi) -> None:
    caller = await lone.caller()
    blueprint = await saved(caller, default=FITTING)
    large = {"sql_content": "SELECT {{a}}", "variables": {"a": {"type": "string", "default": LARGE}}}
    for answer in (
        await caller.post("/blueprints", {"name": "large", **large}),
        await caller.post("/blueprint_validations", large),
        await caller.patch(f"/blueprints/{blueprint}", large),
    ):
        assert field_of(answer) == "variables"


async def test_values_have_so_many_bytes(lone: LoneApi) -> None:
    caller = await lone.caller()
    blueprint, path = await saved(caller), await active(caller)
    body = {"blueprint_uuid": blueprint, "wait": False}
    assert field_of(await caller.post(path, {**body, "variables": {"a": LARGE}})) == "variables"
    created = await caller.create(blueprint_uuid=blueprint, blueprint_variables={"a": LARGE})
    assert field_of(created) == "blueprint_variables"
    data_of(await caller.post(path, {**body, "variables": {"a": FITTING}}), 202)
    for listed in (path, f"/blueprints/{blueprint}/blueprint_applications"):
        [application] = body_of(await caller.get(listed))["data"]
        assert application["variable_values"] == {"a": FITTING}


@together(
    ("pattern", "parts"),
    [
        ("^[a-z][a-z0-9_]{0,30}$", 31),
        ("(.{100}){100}", 10_000),
        ("(?:(a{10}){10}){2,}?b", 201),
        ("a{5}{5}", 25),
        (r"(?P<word>\w{3}|[\w-]{2})", 50),
        (r"\p{Greek}{2}\x{41}{3}\{3}", 26),
        ("[]a]{3}[^]a[b]]{3}[a{3}]", 7),
        ("(?x)a{ 2 , 3 }", 3),
        ("{3}){3}(", 0),
    ],
)
def test_parts_of_a_pattern(pattern: str, parts: int) -> None:
    assert parts_of(pattern) == parts


@together("pattern", ["(.{100}){100}", "a{9999}", r"\w{501}"])
async def test_a_pattern_that_repeats_much(lone: LoneApi, pattern: str) -> None:
    caller = await lone.caller()
    variables = {"a": {"type": "string", "pattern": pattern}}
    for path in ("/blueprints", "/blueprint_validations"):
        name = {"name": "large"} if path == "/blueprints" else {}
        answer = await caller.post(path, {**name, "sql_content": "SELECT {{a}}", "variables": variables})
        assert field_of(answer) == "variables.a.pattern"


async def test_patterns_of_a_blueprint_together(lone: LoneApi) -> None:
    caller = await lone.caller()
    for pattern, code in (("[a-z]{{1,63}}", 201), ("[a-z]{{1,63}}{number}", 422)):
        variables = {
            f"v{number}": {"type": "string", "pattern": pattern.format(number=number)} for number in range(100)
        }
        answer = await caller.post("/blueprints", {"name": "many", "sql_content": "SELECT 1", "variables": variables})
        assert answer.status_code == code


async def test_what_was_saved_before_is_applied(lone: LoneApi) -> None:
    caller = await lone.caller()
    blueprint, path = await saved(caller), await active(caller)
    before = {"a": {"type": "string", "pattern": "(.{100}){100}|y"}, "b": {"type": "string", "default": LARGE}}
    await execute("UPDATE blueprint_versions SET variables = $1::jsonb", json.dumps(before))
    data_of(await caller.post(path, {"blueprint_uuid": blueprint, "wait": False, "variables": {"a": "y"}}), 202)
