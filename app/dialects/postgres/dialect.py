"""PostgreSQL's dialect."""

import re
from collections.abc import Callable, Iterator, Set
from types import MappingProxyType

from app.contracts.base import Engine
from app.dialects.analysis import Analysis
from app.dialects.base import Dialect, Result
from app.dialects.postgres import lexer
from app.dialects.postgres.judge.rules import classified
from app.dialects.postgres.parser import on_deep_stack, parse_statements
from app.dialects.postgres.scripts.analyzer import analyze
from app.dialects.tokens import Token
from app.dialects.verdict import SqlClass


class PostgresDialect(Dialect):
    engine = Engine.POSTGRES
    label = "PostgreSQL"
    name_mark = '"'
    signs = re.compile(
        r"\$\$|::|\b(?:SMALL|BIG)?SERIAL\b|\bpg_catalog\b|\bplpgsql\b|\bEXTENSION\b|\bTIMESTAMPTZ\b|\bJSONB\b|\bBYTEA\b"
        r"|\bOWNER TO\b|\bRETURNING\b|\bON CONFLICT\b|\bpublic\.|^[ \t]*+\\|\bVACUUM\b|\bCONCURRENTLY\b|\bILIKE\b",
        re.IGNORECASE | re.MULTILINE,
    )
    schema_reads = "a SELECT from information_schema"
    error_phrases = MappingProxyType(
        {
            "42601": "a syntax error",
            "42703": "a column that doesn't exist",
            "42P01": "a table that doesn't exist",
            "42883": "a function or operator that doesn't exist for these types",
            "42702": "an ambiguous column",
            "42803": "a column that is neither grouped nor aggregated",
            "42804": "types that don't match",
            "3F000": "a schema that doesn't exist",
            "42704": "a type or object that doesn't exist",
        }
    )
    not_granted_codes = frozenset({"42501"})

    def tokens(self, text: str) -> Iterator[Token]:
        return lexer.tokens(text)

    def split(self, script: str) -> list[tuple[int, int]]:
        return [(found.first_token(script), found.end) for found in parse_statements(script)]

    def analyze(
        self, script: str, *, single: bool = False, thorough: bool = True, extensions: Set[str] = frozenset()
    ) -> Analysis:
        return analyze(script, thorough=thorough, provided=extensions)

    def _classified(self, sql: str, database: str) -> list[tuple[str, SqlClass]]:
        return classified(sql)

    def quote_text(self, value: str) -> str:
        quoted = "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
        # Backslashes are escapes in E'…' only. Doubled quotes close nothing, however a server reads backslashes.
        return f"E{quoted}" if "\\" in value else quoted

    def batch(self, work: Callable[[], Result]) -> Result:
        return on_deep_stack(work)
