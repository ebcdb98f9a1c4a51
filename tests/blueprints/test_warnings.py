"""Warnings: each rule where it applies, and silence about what destroys nothing."""

import re

from app.blueprints.validation import validate
from tests.support.together import together

POSTGRES = {
    "ban-drop-table": ["DROP TABLE a", "DROP TABLE IF EXISTS a, b CASCADE"],
    "ban-drop-column": ["ALTER TABLE a DROP COLUMN b"],
    "ban-drop-schema": ["DROP SCHEMA a CASCADE"],
    "ban-drop-object": ["DROP TYPE a", "DROP SEQUENCE a", "DROP MATERIALIZED VIEW a"],
    "ban-drop-extension": ["DROP EXTENSION citext"],
    "ban-truncate": ["TRUNCATE public.a"],
    "ban-truncate-cascade": ["TRUNCATE a, b CASCADE"],
    "where-require": ["DELETE FROM public.a", "UPDATE public.a SET b = 1"],
    "left-out": [
        "ALTER TABLE public.a OWNER TO b",
        "SET lock_timeout = 0",
        "\\restrict x\nSELECT 1::int",
        "COMMENT ON DATABASE a IS 'b'",
        *("GRANT ALL ON TABLE public.a TO b WITH GRANT OPTION", "REVOKE ALL ON FUNCTION public.f() FROM PUBLIC"),
        "ALTER DEFAULT PRIVILEGES FOR ROLE a IN SCHEMA public GRANT SELECT ON TABLES TO b",
        "SET default_transaction_read_only = off; SELECT 1::int",
    ],
}
MYSQL = {
    "ban-drop-table": ["DROP TABLE `a`, `b`", "DROP TEMPORARY TABLE IF EXISTS `a`"],
    "ban-drop-column": ["ALTER TABLE `a` DROP COLUMN b", "ALTER TABLE `a` ADD c INT, DROP `b`"],
    "ban-drop-partition": ["ALTER TABLE `a` DROP PARTITION p"],
    "ban-truncate": ["TRUNCATE TABLE `a`"],
    "where-require": ["DELETE FROM `a`", "UPDATE `a` SET b = 1"],
    "use-innodb": ["CREATE TABLE `a` (b INT) ENGINE=MyISAM", "ALTER TABLE `a` ENGINE = MEMORY"],
    "character-set": ["SET NAMES latin1; SELECT `a` FROM b"],
    "left-out": [
        *(
            "LOCK TABLES `a` WRITE",
            "UNLOCK TABLES; SELECT `a` FROM b",
            "SET @@SESSION.SQL_LOG_BIN= 0; SELECT `a` FROM b",
        ),
        *("GRANT SELECT ON `a` TO b", "REVOKE ALL ON `a` FROM b", "/*!50000 GRANT ALL ON *.* TO `a`@`b` */"),
        *("CREATE DEFINER=`a`@`b` VIEW v AS SELECT 1", "SET @@GLOBAL.GTID_PURGED=/*!80000 '+'*/ ''; SELECT `a` FROM b"),
    ],
}
CASES = [(rule, script) for rules in (POSTGRES, MYSQL) for rule, scripts in rules.items() for script in scripts]


@together(("rule", "script"), CASES)
def test_a_rule_where_it_applies(rule: str, script: str) -> None:
    verdict = validate(f"\n{script}", {})

    assert verdict.errors == []
    warning = next((warning for warning in verdict.warnings if warning.endswith(f"({rule})")), None)
    assert warning is not None, verdict.warnings
    assert re.match(r"line 2: ", warning)


@together(
    "script",
    [
        "CREATE TABLE a (b int); CREATE INDEX i ON a (b); ALTER TABLE a ADD c int NOT NULL, ALTER b SET NOT NULL",
        "CREATE TABLE a (b serial); ALTER TABLE a ADD PRIMARY KEY (b), ADD CHECK (b > 0); ALTER TABLE a RENAME b TO c",
        "CREATE TABLE `a` (b INT) ENGINE=InnoDB; CREATE UNIQUE INDEX i ON `a` (b); ALTER TABLE `a` ADD UNIQUE (b)",
        "CREATE TABLE `a` (b INT); ALTER TABLE `a` MODIFY b BIGINT, ADD KEY k (b), RENAME INDEX k TO l",
        "DELETE FROM a WHERE b = 1; UPDATE a SET b = 2 WHERE b = 1",
        "ALTER TABLE public.a ADD b int NOT NULL, ADD UNIQUE (b); CREATE INDEX ON public.a (b)",
        "RENAME TABLE `a` TO b; ALTER TABLE b DROP PRIMARY KEY, DROP INDEX i",
    ],
)
def test_silence(script: str) -> None:
    assert validate(script, {}).warnings == []


def test_lines_are_listed_together() -> None:
    verdict = validate("DELETE FROM a;\n" * 20, {})

    assert verdict.warnings == [
        "lines 1, 2, 3, 4, 5 and 15 more: DELETE without WHERE deletes all rows of a (where-require)"
    ]
