"""What no blueprint may hold: each refused with a reason, on its line, and not for being unreadable."""

from app.blueprints.reading import read
from app.blueprints.validation import validate
from app.contracts.base import Engine
from tests.support.together import together

POSTGRES = {
    "controls the transaction": [
        *("BEGIN", "START TRANSACTION", "COMMIT", "END", "ROLLBACK", "ABORT", "SAVEPOINT a", "RELEASE a"),
        *("ROLLBACK TO a", "PREPARE TRANSACTION 'x'", "COMMIT PREPARED 'x'", "ROLLBACK PREPARED 'x'"),
        *("SET TRANSACTION READ ONLY", "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE"),
        *("SET default_transaction_read_only = on", "SET transaction_isolation = 'serializable'"),
        "DO $$ BEGIN INSERT INTO t VALUES (1); COMMIT; END $$",
        "DO $$ BEGIN /* ; */ ROLLBACK AND CHAIN; END $$",
        "DO 'BEGIN commit; END'",
    ],
    "about databases": ["CREATE DATABASE a", "DROP DATABASE a", "ALTER DATABASE a SET work_mem = '1MB'"],
    "roles and rights": [
        *("CREATE ROLE a", "CREATE USER a", "DROP ROLE a", "ALTER ROLE a SUPERUSER", "ALTER USER a SET b = 1"),
        *("GRANT a TO b", "REVOKE a FROM b", "REASSIGN OWNED BY a TO b"),
        *(
            "DROP OWNED BY a",
            "SET ROLE a",
            "SET SESSION AUTHORIZATION a",
            "RESET ROLE",
            "CREATE SCHEMA a AUTHORIZATION b",
        ),
        *(
            "COMMENT ON ROLE a IS 'x'",
            "ALTER ROLE a RENAME TO b",
        ),
        "SELECT set_config('role', 'postgres', false)",
        "SELECT 1 WHERE pg_catalog.set_config('session_authorization', 'a', true) IS NULL",
        f"SELECT set_config('role'{'::text' * 1500}, 'postgres', false)",
        "CREATE FUNCTION f() RETURNS int LANGUAGE sql SET role = 'postgres' AS 'SELECT 1'",
        "CREATE SCHEMA a GRANT SELECT ON t TO b",
    ],
    "command of psql": ["\\connect other", "\\i file.sql", "\\copy t from 'f'", "SELECT 1 \\gexec", "\\! rm -rf /"],
    "only psql can send": [
        "COPY t FROM stdin;\n1\t'it''s\n\\.",
        "COPY t (a) FROM STDIN WITH (FORMAT csv);\na;b\n\\.\n",
        "SELECT '\\'; COPY t FROM stdin;",
    ],
    "nobody is there to take it": ["COPY t TO STDOUT"],
    "file of the server": ["COPY t FROM '/etc/passwd'", "COPY (SELECT 1) TO '/tmp/x'"],
    "runs a program": ["COPY t FROM PROGRAM 'id'", "COPY t TO PROGRAM 'sh'"],
    "files of the server": [
        *("SELECT pg_read_file('/etc/passwd')", "SELECT pg_catalog.lo_import('/x')", "SELECT \"pg_ls_dir\"('.')"),
        "CREATE VIEW v AS SELECT Pg_Read_File('x')",
        "DO $$ BEGIN PERFORM lo_export(1, '/tmp/x'); END $$",
    ],
    "needs a superuser": [
        *("CREATE EXTENSION plpython3u", "CREATE EXTENSION IF NOT EXISTS postgres_fdw", "CREATE LANGUAGE plpython3u"),
        "DO $$ BEGIN CREATE EXTENSION IF NOT EXISTS file_fdw; END $$",
    ],
    "can't run inside a transaction": [
        *("CREATE INDEX CONCURRENTLY i ON t (a)", "DROP INDEX CONCURRENTLY i", "REINDEX TABLE CONCURRENTLY t"),
        *("REINDEX SCHEMA public", "REINDEX DATABASE a", "VACUUM", "VACUUM FULL t", "CLUSTER"),
        *("ALTER TABLE t DETACH PARTITION p CONCURRENTLY", "DROP SUBSCRIPTION s"),
        "CREATE SUBSCRIPTION s CONNECTION 'x' PUBLICATION p",
    ],
    "rights over the server": [
        *("ALTER SYSTEM SET work_mem = '1GB'", "CREATE TABLESPACE t LOCATION '/x'", "DROP TABLESPACE t", "CHECKPOINT"),
        *(
            "LOAD 'x'",
            "CREATE EVENT TRIGGER e ON ddl_command_end EXECUTE FUNCTION f()",
        ),
        *("CREATE FUNCTION f() RETURNS int AS 'x', 'y' LANGUAGE c", "CREATE TABLE t (a int) TABLESPACE fast"),
        *(
            "SET session_replication_role = replica",
            "ALTER TABLE t DISABLE TRIGGER ALL",
            "ALTER TABLE t SET TABLESPACE f",
        ),
        "CREATE FUNCTION f() RETURNS int AS 'import os' LANGUAGE plpython3u",
        "CREATE PUBLICATION p FOR ALL TABLES",
    ],
    "reaches other servers": [
        *("CREATE SERVER s FOREIGN DATA WRAPPER f", "CREATE FOREIGN TABLE t (a int) SERVER s"),
        *("CREATE USER MAPPING FOR a SERVER s", "IMPORT FOREIGN SCHEMA a FROM SERVER s INTO b"),
    ],
    "the client's session": ["DISCARD ALL", "LISTEN a", "UNLISTEN *", "RESET ALL", "DECLARE c CURSOR FOR SELECT 1"],
    "changes how the rest": [
        *("SET standard_conforming_strings = off", "SET standard_conforming_strings TO 'of'"),
        "SELECT set_config('standard_conforming_strings', lower('OFF'), false)",
    ],
    "blueprints are UTF-8": ["SET client_encoding = 'LATIN1'", "SET NAMES 'LATIN1'"],
    "code for MySQL": ["/*!50000 DROP TABLE t */", "SELECT 1 /*! + 1 */"],
}
MYSQL = {
    "controls the transaction": [
        *("BEGIN", "START TRANSACTION", "COMMIT", "ROLLBACK", "SAVEPOINT a", "RELEASE SAVEPOINT a", "XA START 'a'"),
        *("SET autocommit = 0", "SET @@session.autocommit=1", "SET TRANSACTION READ ONLY", "BEGIN WORK"),
        *("SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE", "/*!50000 COMMIT */", "ROLLBACK TO a"),
    ],
    "about databases": [
        *("CREATE DATABASE a", "CREATE SCHEMA a", "DROP DATABASE a", "DROP SCHEMA IF EXISTS a", "USE a", "use `a`"),
        *("ALTER DATABASE a CHARACTER SET utf8mb4", "CREATE OR REPLACE DATABASE a", "/*!40000 DROP DATABASE a */"),
        "CREATE DATABASE /*!32312 IF NOT EXISTS*/ `a` /*!40100 DEFAULT CHARACTER SET utf8mb4 */",
    ],
    "users, roles and rights": [
        *("CREATE USER a", "CREATE ROLE a", "DROP USER a", "ALTER USER a IDENTIFIED BY 'b'", "RENAME USER a TO b"),
        *(
            "GRANT a TO b",
            "REVOKE ALL PRIVILEGES, GRANT OPTION FROM a",
            "SET PASSWORD = 'a'",
            "SET ROLE a",
            "SET DEFAULT ROLE a TO b",
        ),
        "/*!50000 GRANT a TO b */",
    ],
    "files of the server": [
        *(
            "LOAD DATA INFILE '/etc/passwd' INTO TABLE t",
            "LOAD DATA LOCAL INFILE 'x' INTO TABLE t",
            "LOAD XML INFILE 'x'",
        ),
        *("SELECT 1 INTO OUTFILE '/tmp/x'", "SELECT 1 INTO DUMPFILE '/tmp/x'", "SELECT LOAD_FILE('/etc/passwd')"),
        *("CREATE TABLE t (a INT) DATA DIRECTORY='/tmp'", "CREATE TABLE t (a INT) INDEX DIRECTORY '/tmp'"),
        *("ALTER TABLE t IMPORT TABLESPACE", "IMPORT TABLE FROM 'x.sdi'", "SELECT 1 /*! INTO OUTFILE 'x' */"),
        "CREATE TABLE t (a INT) PARTITION BY HASH (a) (PARTITION p DATA DIRECTORY = '/tmp')",
        "CREATE PROCEDURE p() BEGIN SELECT 1 INTO OUTFILE '/tmp/x'; END",
    ],
    "locks that are not yours": [
        "SELECT RELEASE_ALL_LOCKS()",
        "CREATE PROCEDURE p() BEGIN DO release_all_locks (); END",
    ],
    "about events": [
        *("CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO SELECT 1", "DROP EVENT e", "ALTER EVENT e DISABLE"),
        "/*!50106 CREATE*/ /*!50117 DEFINER=`a`@`b`*/ /*!50106 EVENT e ON SCHEDULE EVERY 1 DAY DO SELECT 1 */",
    ],
    "rights over the server": [
        *("SET GLOBAL max_connections = 1", "SET PERSIST a = 1", "SET @@global.a = 1", "SET @@PERSIST_ONLY.a = 1"),
        *(
            "FLUSH TABLES",
            "RESET MASTER",
            "SHUTDOWN",
            "KILL 1",
            "INSTALL PLUGIN a SONAME 'b'",
            "PURGE BINARY LOGS TO 'a'",
        ),
        *(
            "START REPLICA",
            "CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (HOST 'a')",
            "CLONE LOCAL DATA DIRECTORY 'a'",
        ),
        *("CREATE FUNCTION f RETURNS STRING SONAME 'udf.so'", "CREATE TABLESPACE t ADD DATAFILE 'a'", "BINLOG 'x'"),
        *("SET SESSION a = 1, GLOBAL b = 2", "CHANGE MASTER TO MASTER_HOST='x'"),
    ],
    "put together while it runs": [
        "PREPARE a FROM 'COMMIT'",
        "EXECUTE a",
        "EXECUTE IMMEDIATE 'COMMIT'",
        "DEALLOCATE PREPARE a",
    ],
    "outside this database": ["CREATE TABLE t (a INT) ENGINE=FEDERATED CONNECTION='x'", "ALTER TABLE t ENGINE CONNECT"],
    "changes how the rest": [
        *("SET sql_mode = 'ANSI_QUOTES'", "SET SESSION sql_mode='NO_BACKSLASH_ESCAPES'", "SET @@sql_mode := 'ansi'"),
        "/*!40101 SET SQL_MODE='ORACLE' */",
    ],
    "hides the statement": ["SET STATEMENT max_statement_time=1 FOR SELECT 1"],
    "blueprints are UTF-8": ["SET NAMES gbk", "SET CHARACTER SET sjis", "SET character_set_client = 'big5'"],
    "of the mysql client": ["source a.sql", "\\. a.sql", "\\u other", "system ls"],
    "keeps a table open": ["HANDLER t OPEN"],
    "servers read": ["/*!50000 SELECT '*/' */", "/*!50000 SELECT /*!50000 1 */ */", "/*!50000 SELECT 1 -- */\n */"],
    "within an executable comment": ["/*!50000 SELECT 1; SELECT 2 */"],
}
CASES = [(Engine.POSTGRES, reason, script) for reason, scripts in POSTGRES.items() for script in scripts]
CASES += [(Engine.MYSQL, reason, script) for reason, scripts in MYSQL.items() for script in scripts]


def _is_sql_alone(script: str) -> bool:
    """Nothing in it is the client's, or in a comment that servers read."""
    return not ("stdin" in script.lower() or "/*!" in script or script.startswith(("\\", "source", "system")))


@together(("dialect", "reason", "script"), CASES)
def test_what_no_blueprint_may_hold(dialect: Engine, reason: str, script: str) -> None:
    analysis = read(f"SELECT 1;\n{script}", dialect, {}).analysis

    assert any(reason in fault.message for fault in analysis.faults), [fault.message for fault in analysis.faults]
    assert all(fault.offset >= len("SELECT 1;\n") for fault in analysis.faults)


@together(("dialect", "script"), [(dialect, script) for dialect, _, script in CASES if _is_sql_alone(script)])
def test_case_blanks_and_comments_make_no_difference(dialect: Engine, script: str) -> None:
    disguised = script.swapcase() if "'" not in script and '"' not in script and "`" not in script else script
    disguised = "/* a; */ " + disguised.replace(" ", " /* ; */\n\t", 1)

    assert not read(disguised, dialect, {}).analysis.valid


@together("script", sorted({script for _, _, script in CASES}))
def test_none_of_it_is_valid_for_the_other_engine_by_chance(script: str) -> None:
    allowed_there = {
        *("CREATE SCHEMA a", "DROP SCHEMA IF EXISTS a", "EXECUTE a"),  # PostgreSQL has schemas, and prepares harmlessly
        "DEALLOCATE PREPARE a",
        *("/*!50000 DROP TABLE t */", "SELECT 1 /*! + 1 */"),
    }
    assert validate(script, {}).valid == (script in allowed_there)


@together(
    "script",
    [
        "SELECT 'COMMIT; pg_read_file(1)' AS \"lo_import_done\"",
        "CREATE PROCEDURE p() LANGUAGE plpgsql AS $$ BEGIN COMMIT; END $$",
        "DO $$ BEGIN RAISE NOTICE 'COMMIT;'; -- commit;\n PERFORM 1 AS commit; END $$",
        "CREATE TABLE t (begin int, commit int, rollback int)",
        "SELECT set_config('search_path', '', false)",
        f"SELECT set_config('search_path', ''{'::text' * 1500}, false)",
        "SET lock_timeout = '2s'; SET LOCAL statement_timeout = '1min'",
        'CREATE EXTENSION IF NOT EXISTS "uuid-ossp"; CREATE EXTENSION pg_trgm WITH SCHEMA public',
        "CREATE SCHEMA a AUTHORIZATION CURRENT_USER",
        "COMMENT ON EXTENSION pg_trgm IS 'trigrams'",
    ],
)
def test_what_only_looks_like_it_is_accepted_for_postgresql(script: str) -> None:
    assert read(script, Engine.POSTGRES, {}).analysis.faults == []


@together(
    "script",
    [
        "INSERT INTO t (a) VALUES ('COMMIT; USE x; LOAD DATA INFILE')",
        "CREATE TABLE `use` (`commit` INT, `grant` INT, `database` INT)",
        "CREATE PROCEDURE p() BEGIN START TRANSACTION; COMMIT; END",
        "SELECT `load_data`, user, event FROM t -- COMMIT; USE x",
        "SET sql_mode = 'STRICT_TRANS_TABLES,NO_AUTO_VALUE_ON_ZERO'",
        "SET @a = 'ANSI_QUOTES'",
        "CREATE DEFINER=CURRENT_USER VIEW v AS SELECT 1",
        # What mariadb-dump begins with, for its client.
        "/*M!999999\\- enable the sandbox mode */ \nSELECT 1",
        # What reads like PostgreSQL's, and what sqlglot doesn't know.
        "SELECT a AS identity FROM t JOIN conflict ON conflict.id = t.id WHERE NOT valid",
        "UPDATE IGNORE t, u SET t.a = DEFAULT, t.b = DEFAULT(t.b) WHERE t.id = u.t_id",
        "INSERT INTO t (t.a) VALUES (1), (DEFAULT(a))",
        "SELECT SQL_NO_CACHE DISTINCTROW a FROM t",
    ],
)
def test_what_only_looks_like_it_is_accepted_for_mysql(script: str) -> None:
    assert read(script, Engine.MYSQL, {}).analysis.faults == []


def test_a_procedure_that_commits_can_be_made_but_not_called() -> None:
    made = "CREATE PROCEDURE p() LANGUAGE plpgsql AS $$ BEGIN COMMIT; END $$;"

    assert validate(made, {}).valid
    assert validate(f"{made}\nCALL p()", {}).errors == [
        "line 2, column 1 (PostgreSQL): p commits or rolls back, which it can't inside a blueprint"
    ]


def test_errors_are_bounded() -> None:
    verdict = validate("GRANT a TO b;\n" * 5000, {})

    assert len(verdict.errors) <= 42
    assert any("more errors" in error for error in verdict.errors)
