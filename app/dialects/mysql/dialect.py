"""MySQL's and MariaDB's dialect."""

import re
from collections.abc import Iterator, Set
from types import MappingProxyType

from app.contracts.base import Engine
from app.dialects.analysis import Analysis
from app.dialects.base import Dialect
from app.dialects.mysql import lexer
from app.dialects.mysql.judge.rules import classified
from app.dialects.mysql.octets import in_hexadecimal
from app.dialects.mysql.scripts.analyzer import analyze
from app.dialects.mysql.splitter import split
from app.dialects.tokens import Token
from app.dialects.verdict import SqlClass


class MySQLDialect(Dialect):
    engine = Engine.MYSQL
    label = "MySQL"
    name_mark = "`"
    signs = re.compile(
        r"`|^[ \t]*+DELIMITER\b|\bENGINE\s*+=|\bAUTO_INCREMENT\b|/\*!|^[ \t]*+#|\bUNSIGNED\b"
        r"|\bLOCK TABLES\b|\bCHARSET\b|\bTINYINT\b|\bDATETIME\b|\bMEDIUMTEXT\b|\bON DUPLICATE KEY\b|\bSQL_MODE\b",
        re.IGNORECASE | re.MULTILINE,
    )
    schema_reads = (
        "SHOW TABLES, SHOW COLUMNS, SHOW INDEX, SHOW CREATE TABLE or VIEW, DESCRIBE (each without WHERE), or "
        "a SELECT from information_schema"
    )
    error_phrases = MappingProxyType(
        {
            "1064": "a syntax error",
            "1054": "a column that doesn't exist",
            "1146": "a table that doesn't exist",
            "1305": "a function that doesn't exist",
            "1052": "an ambiguous column",
            "1055": "a column that is neither grouped nor aggregated",
            "1140": "a column that is neither grouped nor aggregated",
        }
    )
    not_granted_codes = frozenset[str]()

    def tokens(self, text: str) -> Iterator[Token]:
        return lexer.tokens(text)

    def split(self, script: str) -> list[tuple[int, int]]:
        result = split(script)
        if result.error is not None:
            raise result.error
        return [(statement.start, statement.end) for statement in result.statements]

    def analyze(
        self, script: str, *, single: bool = False, thorough: bool = True, extensions: Set[str] = frozenset()
    ) -> Analysis:
        return analyze(script, single=single, thorough=thorough)

    def without_octets(self, script: str) -> str:
        return in_hexadecimal(script)

    def _classified(self, sql: str, database: str) -> list[tuple[str, SqlClass]]:
        return classified(sql, database.lower())

    def quote_text(self, value: str) -> str:
        return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
