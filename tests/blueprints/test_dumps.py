"""A database, dumped as the engine's own program does it, is a blueprint."""

import pytest

from app.blueprints.encodings import text_of
from app.blueprints.preparation import prepare
from app.blueprints.validation import validate
from app.contracts.base import Engine
from tests.blueprints.loading import apply, catalog, dumped, dumped_octets
from tests.engines.harness import EngineHost, session_of, tenants
from tests.servers import RunningServer

POSTGRES = (
    "CREATE SCHEMA sales",
    "CREATE TYPE mood AS ENUM ('sad', 'ok')",
    "CREATE DOMAIN positive AS int CHECK (VALUE > 0)",
    "CREATE TABLE owners (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL UNIQUE,"
    " m mood DEFAULT 'ok', tags text[], data jsonb, many positive,"
    " total int GENERATED ALWAYS AS (length(name)) STORED)",
    'CREATE TABLE pets (id serial PRIMARY KEY, owner_id bigint REFERENCES owners DEFERRABLE, "a ""name" text, b bytea)',
    "CREATE TABLE sales.parts (id int, region text) PARTITION BY LIST (region)",
    "CREATE TABLE sales.parts_eu PARTITION OF sales.parts FOR VALUES IN ('eu')",
    "CREATE VIEW named AS SELECT o.name, count(*) AS n FROM owners o LEFT JOIN pets p ON p.owner_id = o.id GROUP BY 1",
    "CREATE MATERIALIZED VIEW counted AS SELECT count(*) FROM owners",
    "CREATE FUNCTION twice(n int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT n * 2'",
    "CREATE FUNCTION noted() RETURNS trigger LANGUAGE plpgsql AS"
    " $$ BEGIN NEW.name := NEW.name || ';'; RETURN NEW; END $$",
    "CREATE TRIGGER noted BEFORE UPDATE ON owners FOR EACH ROW EXECUTE FUNCTION noted()",
    "ALTER TABLE owners ENABLE ROW LEVEL SECURITY",
    "CREATE POLICY everyone ON owners USING (true)",
    "COMMENT ON TABLE owners IS 'it''s; theirs'",
    "GRANT SELECT ON owners TO PUBLIC",
    "GRANT USAGE ON SCHEMA sales TO PUBLIC",
    "REVOKE EXECUTE ON FUNCTION twice(int) FROM PUBLIC",
    "ALTER DEFAULT PRIVILEGES IN SCHEMA sales GRANT SELECT ON TABLES TO PUBLIC",
    r"""INSERT INTO owners (name, tags, data) VALUES ('Ann''s', '{a,"b c"}', '{"k": "v;"}')""",
    r"INSERT INTO owners (name) VALUES (E'Bob\n\\ö')",
    r"INSERT INTO pets (owner_id, b) VALUES (1, '\x00ff')",
    "INSERT INTO sales.parts VALUES (1, 'eu')",
)
MYSQL = (
    "CREATE TABLE owners (id bigint AUTO_INCREMENT PRIMARY KEY, name varchar(50) NOT NULL COMMENT 'it''s; theirs',"
    " m enum('sad', 'ok') DEFAULT 'ok', data json, b blob, total int GENERATED ALWAYS AS (length(name)) STORED,"
    " FULLTEXT KEY (name), CHECK (total < 100))",
    "CREATE TABLE pets (id int PRIMARY KEY, owner_id bigint, `a ``name` text,"
    " FOREIGN KEY (owner_id) REFERENCES owners (id) ON DELETE CASCADE)",
    "CREATE TABLE parts (id int, y int) PARTITION BY RANGE (y)"
    " (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN MAXVALUE)",
    "CREATE VIEW named AS SELECT name FROM owners",
    "CREATE FUNCTION twice (n int) RETURNS int DETERMINISTIC RETURN n * 2",
    "CREATE PROCEDURE fill () BEGIN IF 1 THEN INSERT INTO owners (name) VALUES ('x;y'); END IF; END",
    "CREATE TRIGGER noted BEFORE INSERT ON pets FOR EACH ROW BEGIN SET NEW.owner_id = 1; END",
    r"""INSERT INTO owners (name, data, b) VALUES ('Ann''s', '{"k": "v;"}', x'00ff27'), ('Bob\n\\ö', NULL, NULL)""",
    "INSERT INTO pets VALUES (1, 1, 'Rex')",
    "INSERT INTO parts VALUES (1, 1), (2, 20)",
)
OPTIONS = {
    "postgres": [
        ("--inserts",),
        ("--column-inserts", "--no-owner", "--no-privileges"),
        ("--inserts", "--rows-per-insert=100", "--disable-triggers"),
        ("--inserts", "--clean", "--if-exists"),
        ("--schema-only",),
    ],
    "mariadb": [("--hex-blob", "--routines"), ("--hex-blob", "--routines", "--skip-extended-insert"), ("--no-data",)],
}
CASES = [(flavour, options) for flavour, found in OPTIONS.items() for options in found]


@pytest.mark.parametrize(("flavour", "options"), CASES, ids=lambda value: " ".join(value) if value else "")
async def test_a_dump_is_a_blueprint(
    host: EngineHost, engine_server: RunningServer, flavour: str, options: tuple[str, ...]
) -> None:
    if host.flavour != flavour:
        pytest.skip("for the other engine")
    engine = Engine.POSTGRES if flavour == "postgres" else Engine.MYSQL
    async with tenants(host, 2) as (source, target):
        async with session_of(host, source) as session:
            for statement in POSTGRES if engine is Engine.POSTGRES else MYSQL:
                await session.run(statement)
        dump = await dumped(engine_server, source, *options)
        verdict = validate(dump, {})
        assert verdict.errors == []
        assert verdict.manifest.dialects == [engine]
        await apply(host, target, prepare(dump, engine, None, None))
        if not set(options) & {"--schema-only", "--no-data"}:
            assert await catalog(engine_server, host, target) == await catalog(engine_server, host, source)


async def test_rows_for_psql_are_refused_by_their_line(host: EngineHost, engine_server: RunningServer) -> None:
    if host.flavour != "postgres":
        pytest.skip("psql's alone")
    async with tenants(host) as [source]:
        async with session_of(host, source) as session:
            await session.run("CREATE TABLE pets (name text)")
            await session.run("INSERT INTO pets VALUES ('Rex')")
        dump = await dumped(engine_server, source)
    line = dump[: dump.index("COPY public.pets")].count("\n") + 1
    assert validate(dump, {}).errors == [
        f"line {line}, column 1 (PostgreSQL): COPY … FROM stdin reads data that only psql can send; "
        "write the rows as INSERT statements (pg_dump --inserts does)"
    ]


async def test_octets_of_a_dump_are_what_they_were(host: EngineHost, engine_server: RunningServer) -> None:
    """Without --hex-blob, sent in base64: binary, geometry and bit columns among text."""
    if host.flavour == "postgres":
        pytest.skip("writes them in hexadecimal")
    rows = "SELECT id, hex(b), hex(v), t, hex(g), c + 0 FROM pets ORDER BY id"
    async with tenants(host, 2) as (source, target):
        async with session_of(host, source) as session:
            await session.run(
                "CREATE TABLE pets (id int PRIMARY KEY, b blob, v varbinary(9), t text, g geometry, c bit(9))"
            )
            every, text = bytes(range(256)).hex(), r"""'ö''\\"'"""
            await session.run(f"INSERT INTO pets VALUES (1, x'{every}', x'fe00', {text}, point(1, 2), b'101010101')")
            await session.run("INSERT INTO pets VALUES (2, NULL, '', 'plain', NULL, NULL)")
            made = await session.run(rows)
        script = text_of(await dumped_octets(engine_server, source, "--no-tablespaces"))
        assert "\ufffd" not in script
        await apply(host, target, prepare(script, Engine.MYSQL, None, None))
        async with session_of(host, target) as session:
            assert await session.run(rows) == made


def test_text_that_was_octets_is_reported() -> None:
    """Where nothing marks it as binary, it may be text."""
    verdict = validate("CREATE TABLE `a` (b blob);\nINSERT INTO `a` VALUES ('\ufffd');", {})
    assert verdict.valid
    [warning] = [one for one in verdict.warnings if "replacement-character" in one]
    assert warning.startswith("line 2: rows of a hold U+FFFD")


def test_binary_strings_that_lost_octets_are_refused_by_their_line() -> None:
    """A program that makes text of a dump puts U+FFFD where the octets are none: not the rows would be applied."""
    lost = b"\xff\x80".decode("utf-8", "replace")
    script = f"""CREATE TABLE `pets` (`id` int, `b` blob);
INSERT INTO `pets` VALUES
(1,_binary 'Rex'),
(2,_binary '\\0{lost}');
INSERT INTO `pets` VALUES (3,'{lost}');"""
    [error] = validate(script, {}).errors
    assert error.startswith("line 4, column 12 (MySQL): this binary string has lost octets")
    assert "--hex-blob" in error
    assert validate(script.replace(lost, "\u00fc"), {}).errors == []
