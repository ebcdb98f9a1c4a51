"""What a tenant has set up by itself before a script is applied: the script is read as it was judged all the same, and
nothing is said of it that isn't so."""

import pytest

from tests.applications.support import applied, tables
from tests.e2e.hosts import mysql, postgres
from tests.support.client import Caller

# Read otherwise, the first literal would not end where it does.
PLAIN_POSTGRES = "CREATE TABLE made (t text DEFAULT 'a\\'); INSERT INTO made VALUES (DEFAULT), ('b');"

SET_FOR_THE_ROLE = (
    "ALTER ROLE CURRENT_USER SET standard_conforming_strings = off",
    "ALTER ROLE CURRENT_USER SET client_encoding = 'LATIN1'",
    "ALTER ROLE CURRENT_USER SET search_path = nowhere",
    "ALTER ROLE CURRENT_USER SET default_transaction_read_only = on",
    "ALTER ROLE CURRENT_USER SET default_transaction_isolation = 'serializable'",
)

BEFORE_POSTGRES = (
    "CREATE TABLE kept (i int)",
    "CREATE FUNCTION lasting() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
    " PERFORM set_config('standard_conforming_strings', 'off', false); RETURN NEW; END $$",
    "CREATE TRIGGER lasting BEFORE INSERT ON kept FOR EACH ROW EXECUTE FUNCTION lasting()",
    "CREATE FUNCTION around() RETURNS text LANGUAGE sql SET standard_conforming_strings = off AS 'SELECT text ''a'''",
    "CREATE PROCEDURE commits() LANGUAGE plpgsql AS $$ BEGIN CREATE TABLE stray (i int); COMMIT; END $$",
    "CREATE PROCEDURE rolls_back() LANGUAGE plpgsql AS $$ BEGIN ROLLBACK; END $$",
)
REFUSED_POSTGRES = {
    "INSERT INTO kept VALUES (1);": "changes how the rest",
    "DO $$ BEGIN EXECUTE 'SET LOCAL standard_' || 'conforming_strings = off'; END $$;": "changes how the rest",
    "DO $$ BEGIN PERFORM set_config(concat('client_', 'encoding'), 'LATIN1', true); END $$;": "changes how the rest",
    "CALL commits();": "invalid transaction termination",
    "CALL rolls_back();": "invalid transaction termination",
    "DO $$ BEGIN CALL commits(); END $$;": "invalid transaction termination",
}

BEFORE_MYSQL = (
    "CREATE TABLE kept (i int)",
    "CREATE PROCEDURE prepares() BEGIN XA START 'x'; INSERT INTO kept VALUES (1); XA END 'x'; XA PREPARE 'x'; END",
    "CREATE PROCEDURE begins() BEGIN XA START 'y'; INSERT INTO kept VALUES (1); END",
    "CREATE PROCEDURE fails() BEGIN START TRANSACTION; INSERT INTO kept VALUES (1);"
    " SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no'; END",
    "CREATE PROCEDURE globally() BEGIN SET GLOBAL sql_mode = 'ANSI'; END",
)
REFUSED_MYSQL = (
    "CALL prepares();",
    "CALL begins();",
    "CALL globally();",
    "CALL fails();",
)


@pytest.mark.parametrize("dry_run", [True, False])
async def test_settings_of_the_role_change_no_reading(caller: Caller, dry_run: bool) -> None:
    database = await caller.created(db_type="postgres")
    async with postgres(database["connection_string"]) as connection:
        for statement in SET_FOR_THE_ROLE:
            await connection.execute(statement)
    application = await applied(caller, database, PLAIN_POSTGRES, dry_run=dry_run)
    assert application["status"] == ("rolled_back" if dry_run else "completed"), application
    assert await tables(database) == ([] if dry_run else ["made"])


async def test_what_is_refused_on_postgresql_changes_nothing(caller: Caller) -> None:
    database = await caller.created(db_type="postgres")
    async with postgres(database["connection_string"]) as connection:
        for statement in BEFORE_POSTGRES:
            await connection.execute(statement)
    for script, reason in REFUSED_POSTGRES.items():
        for dry_run in (True, False):
            text = f"CREATE TABLE first (i int); {script} {PLAIN_POSTGRES}"
            application = await applied(caller, database, text, dry_run=dry_run)
            assert application["status"] == "failed", application
            assert reason in application["error_message"], application
            assert await tables(database) == ["kept"], script


@pytest.mark.parametrize("dry_run", [True, False])
async def test_a_setting_around_a_function_ends_with_it(caller: Caller, dry_run: bool) -> None:
    database = await caller.created(db_type="postgres")
    async with postgres(database["connection_string"]) as connection:
        for statement in BEFORE_POSTGRES:
            await connection.execute(statement)
    application = await applied(caller, database, f"SELECT around(); {PLAIN_POSTGRES}", dry_run=dry_run)
    assert application["status"] == ("rolled_back" if dry_run else "completed"), application
    assert await tables(database) == (["kept"] if dry_run else ["kept", "made"])


async def test_what_is_refused_on_mysql_changes_nothing(caller: Caller) -> None:
    database = await caller.created(db_type="mysql")
    async with mysql(database["connection_string"]) as cursor:
        for statement in BEFORE_MYSQL:
            await cursor.execute(statement)
    for script in REFUSED_MYSQL:
        for dry_run in (True, False):
            text = f"CREATE TABLE first (i int); {script} CREATE TABLE second (i int);"
            application = await applied(caller, database, text, dry_run=dry_run)
            assert application["status"] == "failed", application
            assert "Nothing was changed." in application["error_message"], application
            assert await tables(database) == ["kept"], script
