"""A script read as PostgreSQL's SQL: its statements, what refuses it, and what to warn of."""

import re
from collections.abc import Set
from dataclasses import replace

from app.contracts.base import Engine
from app.dialects.analysis import MAX_FAULTS, MAX_STATEMENTS, Analysis, ScriptStatement, StatementSummary
from app.dialects.errors import SqlError, TooManyStatements
from app.dialects.postgres.lexer import tokens
from app.dialects.postgres.parser import ParsedStatement, on_deep_stack, parse_statements
from app.dialects.postgres.recovery import all_errors
from app.dialects.postgres.scripts import bodies, contents, extensions, kinds, psql, refusals, sequences, settings
from app.dialects.postgres.scripts.notices import notices
from app.dialects.tokens import TokenKind

# psql's own guards around a dump, which mean nothing without psql.
_HARMLESS_META_COMMANDS = frozenset({"\\restrict", "\\unrestrict"})
_SERVER_FUNCTION = re.compile(r"(?i)\b(?:" + "|".join(contents.SERVER_FUNCTIONS) + r")\b")


def analyze(script: str, *, thorough: bool = True, provided: Set[str] = frozenset()) -> Analysis:
    """`script` holds no placeholders any more. Unless `thorough`, the first fault ends it. `provided` are the
    extensions that engine hosts offer."""
    return on_deep_stack(lambda: _PostgresAnalyzer(script, thorough, provided).run())


class _PostgresAnalyzer:
    def __init__(self, script: str, thorough: bool, provided: Set[str]) -> None:
        self._script = script
        self._provided = provided
        self._limit = MAX_FAULTS if thorough else 1
        self._thorough = thorough
        self._analysis = Analysis(Engine.POSTGRES)
        self._committing: set[str] = set()
        self._server_functions = list(_SERVER_FUNCTION.finditer(script))[:MAX_FAULTS]
        self._needed: set[str] = set()
        self._sets_config = "set_config" in script.lower()
        self._sequences = sequences.SequenceSetters(script)

    def run(self) -> Analysis:
        try:
            readable, meta_commands = psql.set_aside(self._script, most=MAX_STATEMENTS)
            self._meta_commands(meta_commands)
            self._executable_comments(readable)
            parsed = parse_statements(readable, most=MAX_STATEMENTS)
        except TooManyStatements as error:
            self._analysis.forbid(error.offset, error.message)
            return self._analysis
        except SqlError as error:
            self._unreadable(error)
            return self._analysis
        for statement in parsed:
            if self._analysis.faults and not self._thorough:
                break
            self._statement(statement)
        self._analysis.faults.sort(key=lambda fault: fault.offset)
        return self._analysis

    def _unreadable(self, first: SqlError) -> None:
        try:
            readable, _ = psql.set_aside(self._script, most=MAX_STATEMENTS)
        except SqlError:
            readable = ""
        for error in all_errors(readable, first, self._limit):
            self._analysis.reject(error.offset, error.message)
        self._analysis.faults.sort(key=lambda fault: fault.offset)

    def _meta_commands(self, found: list[psql.MetaCommand]) -> None:
        for command in found:
            if command.name in _HARMLESS_META_COMMANDS:
                message = f"{command.name} means something to psql only, and is left out"
                self._analysis.notice("left-out", command.offset, message)
            else:
                message = f"{command.name} is a command of psql, not SQL; remove the line"
                self._analysis.reject(command.offset, message)

    def _executable_comments(self, text: str) -> None:
        if "/*!" in text or "/*M!" in text:
            for token in tokens(text):
                if token.kind is TokenKind.COMMENT and text.startswith(("/*!", "/*M!"), token.start):
                    message = "this comment is code for MySQL, and PostgreSQL would skip it; remove it"
                    self._analysis.reject(token.start, message)

    def _statement(self, parsed: ParsedStatement) -> None:
        start = parsed.first_token(self._script)
        reason = refusals.refusal(parsed.node) or contents.refusal(parsed.node) or self._extension(parsed)
        what = kinds.describe(parsed.node)
        if what is not None and (skipped := contents.left_out(parsed.node) or self._of_extension(parsed)):
            self._analysis.notice("left-out", start, skipped)
            self._found(parsed, start, what, skipped)
            return
        if reason or what is None:
            self._analysis.forbid(start, reason or "a blueprint may not hold this kind of statement")
            return
        self._nested(parsed, start)
        self._routines(parsed, start)
        self._functions(parsed, start)
        if parsed.name == "create_extension_stmt":
            self._needs(what.object or "")
        sets_sequence = self._sequences.sets(parsed.node, self._script[start : parsed.end])
        if sets_sequence:
            self._analysis.notice("sequence-not-rolled-back", start, sequences.NOTICE)
        self._found(parsed, start, what, sets_sequence=sets_sequence)
        for rule, message in notices(parsed.node):
            self._analysis.notice(rule, start, message)

    def _found(
        self,
        parsed: ParsedStatement,
        start: int,
        what: StatementSummary,
        left_out: str | None = None,
        *,
        sets_sequence: bool = False,
    ) -> None:
        found = ScriptStatement(start, parsed.end, what.kind, what.object, what.object_type, what.makes)
        self._analysis.statements.append(replace(found, left_out=left_out, sets_sequence=sets_sequence))

    def _extension(self, parsed: ParsedStatement) -> str | None:
        if parsed.name != "create_extension_stmt":
            return None
        made = parsed.node.create_extension_stmt
        return extensions.refusal(made.extname, self._provided, if_not_exists=made.if_not_exists)

    def _of_extension(self, parsed: ParsedStatement) -> str | None:
        """Why a comment on extensions of the server's, or their removal, is left out. Dumps have one for each."""
        names = extensions.named(parsed.node)
        if not names or not all(extensions.is_there(name, self._provided) for name in names):
            return None
        kind = "COMMENT ON" if parsed.name == "comment_stmt" else "DROP"
        return f"{kind} EXTENSION {', '.join(names)} is left out: the extension belongs to the server"

    def _nested(self, parsed: ParsedStatement, start: int) -> None:
        """Judges the other statements that a CREATE SCHEMA may hold."""
        if parsed.name == "create_schema_stmt":
            for element in parsed.node.create_schema_stmt.schema_elts:
                if reason := refusals.refusal(element) or contents.refusal(element):
                    self._analysis.forbid(start, reason)

    def _routines(self, parsed: ParsedStatement, start: int) -> None:
        if parsed.name == "call_stmt":
            called = parsed.node.call_stmt.funccall.funcname[-1].string.sval
            if called in self._committing:
                self._analysis.forbid(start, f"{called} commits or rolls back, which it can't inside a blueprint")
        if parsed.name not in ("do_stmt", "create_function_stmt"):
            return
        is_block = parsed.name == "do_stmt"
        options = parsed.node.do_stmt.args if is_block else parsed.node.create_function_stmt.options
        text = bodies.text_of(options)
        if text is None:
            return
        body, at = bodies.read(text), bodies.place(self._script, start, parsed.end, text)
        if is_block and (language := bodies.language(options, "plpgsql")) not in bodies.LANGUAGES:
            self._analysis.forbid(start, f"DO in the language {language} isn't offered; write it in plpgsql")
        if (control := body.transaction_control()) is not None:
            if is_block:
                self._analysis.forbid(
                    at + control, refusals.TRANSACTION.format(kind="COMMIT or ROLLBACK in a DO block")
                )
            else:
                self._committing.add(parsed.node.create_function_stmt.funcname[-1].string.sval)
        if is_block and (found := body.first(contents.SERVER_FUNCTIONS)):
            self._analysis.forbid(at + found[0], f"{found[1]} reaches files of the server, which blueprints may not")
        for offset, name, if_not_exists in body.extensions() if is_block else ():
            if reason := extensions.refusal(name, self._provided, if_not_exists=if_not_exists):
                self._analysis.forbid(at + offset, reason)
            self._needs(name)

    def _functions(self, parsed: ParsedStatement, start: int) -> None:
        for match in self._server_functions:
            if start <= match.start() < parsed.end and self._is_code(match.start(), start, parsed.end):
                name = match.group().lower()
                self._analysis.forbid(match.start(), f"{name} reaches files of the server, which blueprints may not")
        if self._sets_config and "set_config" in self._script[start : parsed.end].lower():
            for name, value in settings.set_config_calls(parsed.node):
                if reason := settings.refusal(name, value):
                    self._analysis.forbid(start, reason)

    def _is_code(self, offset: int, start: int, end: int) -> bool:
        for token in tokens(self._script[:end], start):
            if token.start <= offset < token.end:
                word = self._script[token.start : token.end].strip('"').lower()
                return token.kind in (TokenKind.WORD, TokenKind.QUOTED_NAME) and word in contents.SERVER_FUNCTIONS
        return False

    def _needs(self, extension: str) -> None:
        if extension not in self._needed:
            self._needed.add(extension)
            self._analysis.extensions.append(extension)
