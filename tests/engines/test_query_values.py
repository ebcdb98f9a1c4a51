"""Values on their way to JSON lose nothing, on each engine."""

from typing import Any

import pytest

from tests.engines.harness import EngineHost, tenants
from tests.engines.test_queries import LIMITS, PASSWORD, read

POSTGRES: list[tuple[str, Any]] = [
    ("NULL::int", None),
    ("true", True),
    ("42", 42),
    ("9007199254740991::bigint", 9007199254740991),
    ("9007199254740993::bigint", "9007199254740993"),
    ("(-9223372036854775808)::bigint", "-9223372036854775808"),
    ("12345678901234567890.1234567890::numeric", "12345678901234567890.1234567890"),
    ("1.50::numeric(10,2)", "1.50"),
    ("'NaN'::numeric", "NaN"),
    ("0.1::float8", 0.1),
    ("'NaN'::float8", "NaN"),
    ("'-Infinity'::float4", "-Infinity"),
    ("timestamptz '2026-03-29 01:30:00.123456+02'", "2026-03-28T23:30:00.123456+00:00"),
    ("timestamp '2026-03-29 01:30:00'", "2026-03-29T01:30:00"),
    ("'infinity'::timestamptz", "infinity"),
    ("'294276-12-31 23:59:59'::timestamp", "294276-12-31T23:59:59"),
    ("'0044-03-15 BC'::date", "0044-03-15 BC"),
    ("date '2026-11-20'", "2026-11-20"),
    ("time '24:00:00'", "24:00:00"),
    ("timetz '12:00:00+05:30'", "12:00:00+05:30"),
    ("interval '1 mon 2 days 03:04:05.6'", "P1M2DT3H4M5.6S"),
    (r"'\x00ff'::bytea", "AP8="),
    ("'7f6c2b1e-4d0a-4c8e-9b57-3a1f2e6d8c90'::uuid", "7f6c2b1e-4d0a-4c8e-9b57-3a1f2e6d8c90"),
    ("""'{"a": [1, null], "b": "x"}'::jsonb""", {"a": [1, None], "b": "x"}),
    ("""'[1.0]'::json""", [1.0]),
    ("ARRAY[1, NULL, 3]", [1, None, 3]),
    ("ARRAY[9007199254740993]::bigint[]", ["9007199254740993"]),
    ("ARRAY[[1, 2], [3, 4]]", [[1, 2], [3, 4]]),
    (
        """ARRAY['a,b', 'say "hi"', 'NULL', '', '{x}', 'back\\slash']""",
        ["a,b", 'say "hi"', "NULL", "", "{x}", "back\\slash"],
    ),
    ("'{}'::text[]", []),
    ("ARRAY[true, false]", [True, False]),
    ("""ARRAY['{"a": 1}'::jsonb]""", [{"a": 1}]),
    ("'[2:3]={5,6}'::int[]", [5, 6]),
    ("int4range(1, 5)", "[1,5)"),
    ("inet '10.0.0.1/8'", "10.0.0.1/8"),
    ("B'0101'", "0101"),
    ("point '(1,2)'", "(1,2)"),
    ("ROW(1, 'x')", "(1,x)"),
    ("ARRAY[timestamptz 'infinity']", ["infinity"]),
    ("'ünïcödé 🦆'::text", "ünïcödé 🦆"),
]
MYSQL: list[tuple[str, Any]] = [
    ("NULL", None),
    ("TRUE", 1),
    ("42", 42),
    ("9007199254740993", "9007199254740993"),
    ("CAST(18446744073709551615 AS UNSIGNED)", "18446744073709551615"),
    ("CAST('12345678901234567890.1234567890' AS DECIMAL(40, 10))", "12345678901234567890.1234567890"),
    ("CAST(1.5 AS DECIMAL(10, 2))", "1.50"),
    ("0.1e0", 0.1),
    ("TIMESTAMP '2026-03-29 01:30:00.123456'", "2026-03-29T01:30:00.123456"),
    ("DATE '2026-11-20'", "2026-11-20"),
    ("CAST('-838:59:59' AS TIME)", "-838:59:59"),
    ("X'00FF'", "AP8="),
    ("CAST(X'00FF' AS BINARY)", "AP8="),
    ("'ünïcödé 🦆'", "ünïcödé 🦆"),
    ("''", ""),
]


@pytest.mark.parametrize("engine", ["postgres", "mysql"])
async def test_values(host: EngineHost, engine: str) -> None:
    if (host.flavour == "postgres") != (engine == "postgres"):
        pytest.skip("the other engine's values")
    values = POSTGRES if engine == "postgres" else MYSQL
    async with tenants(host) as [tenant]:
        await host.adapter.make_reader(tenant, PASSWORD)
        result = await read(host, tenant, "SELECT " + ", ".join(f"{sql} AS c{n}" for n, (sql, _) in enumerate(values)))
        [row] = result["rows"]
        for number, (sql, expected) in enumerate(values):
            assert row[f"c{number}"] == expected, sql
            assert isinstance(row[f"c{number}"], type(expected)), sql


async def test_columns_of_one_name_stay_apart(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        await host.adapter.make_reader(tenant, PASSWORD)
        result = await read(host, tenant, "SELECT 1 AS id, 2 AS id, 3 AS id_2, 4 AS id")
        assert result["rows"] == [{"id": 1, "id_2_2": 2, "id_2": 3, "id_3": 4}] or list(result["rows"][0].values()) == [
            1,
            2,
            3,
            4,
        ]
        assert [column["name"] for column in result["columns"]] == list(result["rows"][0])


async def test_stored_types_of_mysql(host: EngineHost) -> None:
    if host.flavour == "postgres":
        pytest.skip("MySQL's own types")
    async with tenants(host) as [tenant]:
        async with host.adapter.writing(tenant, LIMITS) as session:
            await session.change(
                [
                    "CREATE TABLE t (at TIMESTAMP(3) NULL, day DATETIME, flags BIT(12), mood ENUM('good','bad'),"
                    " tags SET('a','b'), data VARBINARY(4), doc JSON, place POINT, year YEAR)"
                ]
            )
        async with host.adapter.writing(tenant, LIMITS) as session:
            await session.write(
                "INSERT INTO t VALUES ('2026-03-29 01:30:00.5', '2026-03-29 01:30:00', 2049, 'bad', 'a,b', X'FF00',"
                """ '{"n": 12345678901234567890}', ST_GeomFromText('POINT(1 2)'), 2026)"""
            )
        await host.adapter.make_reader(tenant, PASSWORD)
        [row] = (await read(host, tenant, "SELECT * FROM t"))["rows"]
        assert row["at"] == "2026-03-29T01:30:00.500+00:00"
        assert row["day"] == "2026-03-29T01:30:00"
        assert (row["flags"], row["mood"], row["tags"], row["data"]) == (2049, "bad", "a,b", "/wA=")
        assert row["year"] == 2026
        document = {"n": 12345678901234567890}
        # MariaDB's JSON is a text.
        assert row["doc"] == document or row["doc"] == '{"n": 12345678901234567890}'
        assert isinstance(row["place"], str)
