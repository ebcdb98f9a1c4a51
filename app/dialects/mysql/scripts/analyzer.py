"""A script read as MySQL's SQL: its statements, what refuses it, and what to warn of."""

from app.contracts.base import Engine
from app.dialects.analysis import MAX_STATEMENTS, Analysis, Cut, ScriptStatement, StatementSummary
from app.dialects.errors import TooManyStatements
from app.dialects.mysql.scripts import contents, kinds, refusals, settings, syntax
from app.dialects.mysql.scripts.definer import find_definer
from app.dialects.mysql.scripts.notices import notices
from app.dialects.mysql.scripts.reader import Reader
from app.dialects.mysql.splitter import SplitStatement, split
from app.dialects.tokens import TokenKind

_LOCKS_LEFT_OUT = "LOCK and UNLOCK TABLES are left out: nobody else uses what a blueprint makes, and locks end with it"
_RIGHTS_LEFT_OUT = "rights on objects are left out: the database's own user has all that there are"
_DEFINER_LEFT_OUT = "DEFINER is left out: views and routines belong to the database's own user"


def analyze(script: str, *, single: bool = False, thorough: bool = True) -> Analysis:
    """`script` holds no placeholders any more. `single`: it was cut out of a script as one statement. Unless
    `thorough`, the first fault ends it."""
    return _MySQLAnalyzer(script, single, thorough).run()


class _MySQLAnalyzer:
    def __init__(self, script: str, single: bool, thorough: bool) -> None:
        self._script = script
        self._single = single
        self._thorough = thorough
        self._analysis = Analysis(Engine.MYSQL)
        self._parser = syntax.Parser()

    def run(self) -> Analysis:
        result = split(self._script, single=self._single, most=MAX_STATEMENTS)
        for statement in result.statements if not isinstance(result.error, TooManyStatements) else ():
            if self._analysis.faults and not self._thorough:
                break
            self._statement(statement)
        if isinstance(result.error, TooManyStatements):
            self._analysis.forbid(result.error.offset, result.error.message)
        elif result.error is not None:
            self._analysis.reject(result.error.offset, result.error.message)
        if (nul := self._script.find("\0")) != -1:
            self._analysis.reject(nul, "there is a NUL character here")
        self._analysis.faults.sort(key=lambda fault: fault.offset)
        return self._analysis

    def _statement(self, statement: SplitStatement) -> None:
        reader = Reader(self._script, statement)
        start = reader.start
        if not _whole(statement):
            message = "a statement ends within an executable comment; put the whole statement into it, or none"
            self._analysis.reject(start, message)
            return
        if skipped := _left_out(reader):
            self._analysis.notice("left-out", start, skipped)
            self._found(statement, StatementSummary(reader.item(0).text.upper()), left_out=skipped)
            return
        if reason := refusals.refusal(reader):
            known_elsewhere = reader.word(1) == "schema" or reason.startswith(refusals.KNOWN_ELSEWHERE)
            (self._analysis.reject if known_elsewhere else self._analysis.forbid)(start, reason)
            return
        what = kinds.describe(reader)
        if what is None:
            self._analysis.reject(start, _unknown(reader))
            return
        for offset, message in contents.refusals(reader, what):
            self._analysis.forbid(offset, message)
        for offset, message in contents.lost_octets(reader):
            self._analysis.reject(offset, message)
        for offset, message in contents.wrong_names(reader, what):
            self._analysis.reject(offset, message)
        known = len(self._analysis.faults)
        for offset, message in syntax.token_errors(reader):
            self._analysis.reject(offset, message)
        # What was cut out of a script has the tokens of a statement that was read before.
        if len(self._analysis.faults) == known and not self._single:
            error = self._parser.error(self._script, statement, what)
            if error is not None:
                self._analysis.reject(*error)
        cut = find_definer(reader) if what.kind.startswith(("CREATE", "ALTER")) else None
        if cut is not None:
            self._analysis.notice("left-out", cut.start, _DEFINER_LEFT_OUT)
        self._found(statement, what, (cut,) if cut else ())
        for rule, message in notices(reader, what):
            self._analysis.notice(rule, start, message)

    def _found(
        self,
        statement: SplitStatement,
        what: StatementSummary,
        cuts: tuple[Cut, ...] = (),
        left_out: str | None = None,
    ) -> None:
        self._analysis.statements.append(
            ScriptStatement(
                statement.start,
                statement.end,
                what.kind,
                what.object,
                what.object_type,
                what.makes,
                cuts,
                left_out,
            )
        )


def _unknown(reader: Reader) -> str:
    words = " ".join(reader.item(index).text for index in range(min(2, len(reader.tokens))))[:60]
    return f"`{words}` begins no statement that a blueprint for MySQL may hold"


def _whole(statement: SplitStatement) -> bool:
    if not statement.has_marks:
        return True
    depth = 0
    for token in statement.tokens:
        if token.kind is TokenKind.OPEN:
            depth += 1
        elif token.kind is TokenKind.CLOSE:
            depth -= 1
        if depth < 0:
            return False
    return depth == 0


def _left_out(reader: Reader) -> str | None:
    words = (reader.word(), reader.word(1))
    if words[0] in ("lock", "unlock") and words[1] in ("table", "tables"):
        return _LOCKS_LEFT_OUT
    if words[0] in ("grant", "revoke") and reader.find("on") is not None:
        return _RIGHTS_LEFT_OUT
    return settings.left_out(reader) if words[0] == "set" else None
